/* shape.c - shapes: sizes in checked arithmetic, comparison, printing. */
#include <stdio.h>

#include "op.h"

int64_t adj_shape_elems(adj_shape shape)
{
    int64_t n = 1;
    int empty = 0;
    if (shape.rank < 0 || shape.rank > ADJ_MAX_RANK)
        return -1;
    for (int i = 0; i < shape.rank; i++) {
        if (shape.dim[i] < 0)
            return -1;
        if (shape.dim[i] == 0)
            empty = 1;
        else if (__builtin_mul_overflow(n, shape.dim[i], &n))
            return -1;
    }
    return empty ? 0 : n;
}

size_t adj_type_bytes(adj_type type)
{
    int64_t n = adj_shape_elems(type.shape);
    size_t size = adj_dtype_size(type.dtype), bytes;
    return n < 0 || size == 0 || __builtin_mul_overflow(n, size, &bytes) ? SIZE_MAX : bytes;
}

int adj_shape_equal(adj_shape a, adj_shape b)
{
    if (a.rank != b.rank)
        return 0;
    for (int i = 0; i < a.rank && i < ADJ_MAX_RANK; i++)
        if (a.dim[i] != b.dim[i])
            return 0;
    return 1;
}

adj_text adj_shape_text(adj_shape shape)
{
    adj_text t = {"["};
    size_t used = 1;
    if (shape.rank < 0 || shape.rank > ADJ_MAX_RANK) {
        snprintf(t.s, sizeof t.s, "[rank %lld]", (long long)shape.rank);
        return t;
    }
    for (int i = 0; i < shape.rank; i++)
        used += (size_t)snprintf(t.s + used, sizeof t.s - used, "%s%lld", i > 0 ? ", " : "",
                                 (long long)shape.dim[i]);
    snprintf(t.s + used, sizeof t.s - used, "]"); /* 6 * 22 characters fit */
    return t;
}
