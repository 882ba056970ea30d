/* resize.h - resize and its gradient: each element of the result is a weighted sum of elements
 * of the operand (src), along the rows and along the columns. Planning the kernel lists the
 * elements and their weights; the gradient's lists are the transposed ones. */
#ifndef DIRECT_RESIZE_H
#define DIRECT_RESIZE_H

#include "backends/direct/direct.h"

enum { RESIZE_BLOCK = 2048 }; /* elements of a block of a row: several fit into the first cache */

typedef struct { /* the elements that a result's element reads along an axis */
    int32_t first, n;
    ptrdiff_t weight; /* index of the first weight among the axis's */
} resize_span;

typedef struct {
    ptrdiff_t src, dst;    /* sizes of the operand and of the result */
    size_t spans, weights; /* offsets of the lists in the state, in bytes */
} resize_axis;

typedef struct {
    direct_work work; /* a job is a row of the result */
    adj_dtype dtype;
    ptrdiff_t channels, channel_block; /* channels; as many as fit a block for one column's reads */
    resize_axis h, w;                  /* followed by the lists */
} resize;

static inline const resize_span *resize_spans(const resize *p, const resize_axis *a)
{
    return (const resize_span *)(const void *)((const char *)p + a->spans);
}

static inline const float *resize_weights(const resize *p, const resize_axis *a)
{
    return (const float *)(const void *)((const char *)p + a->weights);
}

#endif
