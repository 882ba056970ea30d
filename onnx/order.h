/* order.h - elements of a row-major tensor in the order of permuted axes. */
#ifndef ONNX_ORDER_H
#define ONNX_ORDER_H

#include "adjoint.h"

/* Position in a tensor whose axis i is axis perm[i] of another one. */
typedef struct {
    int rank;
    int64_t size[ADJ_MAX_RANK], stride[ADJ_MAX_RANK]; /* by axis of the permuted tensor */
    int64_t at[ADJ_MAX_RANK];
    int64_t from; /* index of the element in the other tensor */
} order;

/* Returns the position of the first element of a tensor of that shape after perm. */
static inline order order_start(adj_shape shape, const int perm[])
{
    order o = {.rank = (int)shape.rank};
    int64_t stride[ADJ_MAX_RANK] = {0}, step = 1;
    for (int i = o.rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= shape.dim[i];
    }
    for (int i = 0; i < o.rank; i++) {
        o.size[i] = shape.dim[perm[i]];
        o.stride[i] = stride[perm[i]];
    }
    return o;
}

/* Moves to the next element; past the last to the first. */
static inline void order_next(order *o)
{
    for (int i = o->rank - 1; i >= 0; i--) {
        o->from += o->stride[i];
        if (++o->at[i] < o->size[i])
            return;
        o->from -= o->stride[i] * o->at[i];
        o->at[i] = 0;
    }
}

#endif
