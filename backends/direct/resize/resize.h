/* resize.h - resize and its gradient: each element of the result is a weighted sum of elements of
 * the operand (src), along the rows and along the columns. What is read with which weight is listed
 * when the kernel is planned; the gradient's lists are the transposed ones. */
#ifndef DIRECT_RESIZE_H
#define DIRECT_RESIZE_H

#include "backends/direct/direct.h"

enum { RESIZE_BLOCK = 2048 }; /* elements of a part of a row: a few fit into the first cache */

typedef struct { /* what an element of the result reads along an axis */
    int32_t first, n;
    ptrdiff_t weight; /* the first one's place among the axis' */
} resize_span;

typedef struct {
    ptrdiff_t src, dst;    /* sizes of the operand and of the result */
    size_t spans, weights; /* where the lists lie in the state, in bytes */
} resize_axis;

typedef struct {
    direct_work work; /* a job is a row of the result */
    adj_dtype dtype;
    ptrdiff_t channels, channel_block; /* as many as fit into a part with what one column reads */
    resize_axis h, w;                  /* the lists lie behind */
} resize;

static inline const resize_span *resize_spans(const resize *p, const resize_axis *a)
{
    return (const resize_span *)(const void *)((const char *)p + a->spans);
}

static inline const float *resize_weights(const resize *p, const resize_axis *a)
{
    return (const float *)(const void *)((const char *)p + a->weights);
}

/* rows.c, per instruction set */
extern const direct_code direct_resize_base, direct_resize_avx2, direct_resize_avx512;

#endif
