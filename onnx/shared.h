/* shared.h - declarations that import and export share: memory in a list of blocks that are freed
 * together, element types, products of sizes, and the elements of a row-major tensor in another
 * order. */
#ifndef ONNX_SHARED_H
#define ONNX_SHARED_H

#include "adjoint.h"

struct chunk;
/* Returns zeroed memory; NULL when out of memory or if the size overflows. */
void *chunk_alloc(struct chunk **list, int64_t count, size_t size);
void chunk_free(struct chunk *list);

/* Returns the element type in a file of values of that type (numbers.c). */
int32_t elem_of(adj_dtype dtype);
/* Returns the product of sizes from .. to - 1. */
int64_t product(const adj_shape *s, int from, int to);

extern const int axes_in_order[ADJ_MAX_RANK]; /* 0, 1, ... */
/* Walk through the elements of a tensor (the result) that is made of another one's (the source). */
typedef struct {
    int rank;
    int64_t size[ADJ_MAX_RANK],
        stride[ADJ_MAX_RANK]; /* by axis of the result; stride: in the source */
    int64_t at[ADJ_MAX_RANK];
    int64_t from; /* index of the element in the source */
} order;
/* Starts at the first element of a result whose axis i is axis perm[i] of the source's shape. */
order order_permuted(adj_shape shape, const int perm[]);
/* Starts at the first element of a result to whose shape `from` is broadcast. */
order order_broadcast(adj_shape from, adj_shape to);
/* Moves to the next element; past the last to the first. */
void order_next(order *o);

#endif
