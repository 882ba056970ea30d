/* shared.h - what import and export share: memory in a list of blocks that are freed together, and
 * the elements of a row-major tensor in another order. */
#ifndef ONNX_SHARED_H
#define ONNX_SHARED_H

#include "adjoint.h"

struct chunk;
/* Returns zeroed memory; NULL when out of memory or if the size overflows. */
void *chunk_alloc(struct chunk **list, int64_t count, size_t size);
void chunk_free(struct chunk *list);

extern const int axes_in_order[ADJ_MAX_RANK]; /* 0, 1, ... */
/* Position in a tensor that another one is made of. */
typedef struct {
    int rank;
    int64_t size[ADJ_MAX_RANK], stride[ADJ_MAX_RANK]; /* by axis of the other tensor */
    int64_t at[ADJ_MAX_RANK];
    int64_t from; /* index of the element in the first tensor */
} order;
/* Returns the position of the first element of a tensor whose axis i is axis perm[i] of `shape`. */
order order_permuted(adj_shape shape, const int perm[]);
/* Returns that of a tensor to whose shape `from` is broadcast. */
order order_broadcast(adj_shape from, adj_shape to);
/* Moves to the next element; past the last to the first. */
void order_next(order *o);

#endif
