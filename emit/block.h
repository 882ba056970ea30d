/* block.h - functions of convolutions and matrix products. */
#ifndef EMIT_BLOCK_H
#define EMIT_BLOCK_H

#include "conv.h"
#include "emit.h"

/* A convolution of operand 0 with the filter, operand 1; a matrix product is one of 1 x 1. */
typedef struct {
    adj_conv_geom geom;
    int64_t pixel, channel; /* distances in operand 0 of pixels, and of channels */
    /* Loop variables: pixels of a row, channels of operand 0 and of the result. */
    const char *variable, *inner, *lane;
} convolution;

/* Writes the body: sums and the stores of results. */
void put_convolution(function *f, const convolution *p);

#endif
