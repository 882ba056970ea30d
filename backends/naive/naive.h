/* naive.h - one line of the naive backend's table; the same for every element type. */
#ifndef NAIVE_H
#define NAIVE_H

#include "adjoint_ext.h"

typedef struct part part; /* some contiguous elements of one type: kernels.h */

typedef struct {
    const adj_op *op; /* NULL: end of the table */
    adj_status (*run)(const adj_call *c);
    void (*each)(const part *p);          /* in place of run, for each part of an elementwise op */
    size_t (*scratch)(const adj_node *n); /* bytes; NULL: none */
    int by_operand; /* 1: compiled for operand 0's type, not for the result's */
    int in_place;   /* 1: operand 0's buffer may become the result's, if the types are equal */
} naive_entry;

#endif
