/* shared.c - see shared.h. */
#include "shared.h"

#include <stdlib.h>

typedef struct chunk {
    struct chunk *next;
    _Alignas(16) char data[];
} chunk;

void *chunk_alloc(chunk **list, int64_t count, size_t size)
{
    int64_t bytes = 0;
    if (__builtin_mul_overflow(count, (int64_t)size, &bytes) || bytes > INT64_MAX - 64)
        return NULL;
    chunk *c = calloc(1, sizeof *c + (size_t)bytes);
    if (c == NULL)
        return NULL;
    c->next = *list;
    *list = c;
    return c->data;
}

void chunk_free(chunk *list)
{
    while (list != NULL) {
        chunk *next = list->next;
        free(list);
        list = next;
    }
}

/* ---- order of elements ---- */

int64_t product(const adj_shape *s, int from, int to)
{
    int64_t p = 1;
    for (int i = from; i < to; i++)
        p *= s->dim[i];
    return p;
}

const int axes_in_order[ADJ_MAX_RANK] = {0, 1, 2, 3, 4, 5};

order order_permuted(adj_shape shape, const int perm[])
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

order order_broadcast(adj_shape from, adj_shape to)
{
    order o = {.rank = (int)to.rank};
    int64_t step = 1;
    for (int64_t i = to.rank - 1, k = from.rank - 1; i >= 0; i--, k--) {
        o.size[i] = to.dim[i];
        o.stride[i] = k >= 0 && from.dim[k] != 1 ? step : 0;
        step *= k >= 0 ? from.dim[k] : 1;
    }
    return o;
}

void order_next(order *o)
{
    for (int i = o->rank - 1; i >= 0; i--) {
        o->from += o->stride[i];
        if (++o->at[i] < o->size[i])
            return;
        o->from -= o->stride[i] * o->at[i];
        o->at[i] = 0;
    }
}
