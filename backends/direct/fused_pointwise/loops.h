/* loops.h - the loops of a fused group's nodes that are independent of channels. */
#ifndef DIRECT_FUSED_POINTWISE_LOOPS_H
#define DIRECT_FUSED_POINTWISE_LOOPS_H

#include "backends/direct/isa.h"
#include "fused_pointwise.h"

typedef struct {
    ptrdiff_t n;
    float *y;
    const float *x[FUSED_OPERANDS]; /* may be y; unused entries alias a used one */
    const float *k;                 /* the node's FUSED_CONSTANTS */
} fused_loop_args;

/* Computes y[i] from x[..][i]. */
void DIRECT(fused_loop)(fused_code code, const fused_loop_args *a);

#endif
