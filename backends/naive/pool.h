/* pool.h - helpers of the naive pooling kernels: offsets of elements, and the elements of a
 * window. */
#ifndef NAIVE_POOL_H
#define NAIVE_POOL_H

#include "conv.h"

enum { PARALLEL_POOL = 1 << 12 }; /* windows that justify several threads */

typedef struct {
    adj_conv_geom k;
    ptrdiff_t kc;
    strides x, y;
} pool_call;

static inline pool_call pool_call_of(const adj_call *c)
{
    const adj_pool_attrs *a = c->group->node[0]->attrs;
    adj_conv_geom k = a->geom;
    return (pool_call){k, a->kc, strides_of(k.format, k.ih, k.iw, k.ic),
                       strides_of(k.format, k.oh, k.ow, k.oc)};
}

typedef struct {
    ptrdiff_t from, to; /* from <= i < to */
} span;

/* Returns the input positions inside window o: o*stride - pad and the k - 1 after it. */
static inline span window_of(ptrdiff_t o, ptrdiff_t stride, ptrdiff_t pad, ptrdiff_t k,
                             ptrdiff_t in)
{
    ptrdiff_t from = o * stride - pad, to = from + k;
    return (span){from > 0 ? from : 0, to < in ? to : in};
}

/* Returns the windows that contain input position i. */
static inline span windows_at(ptrdiff_t i, ptrdiff_t stride, ptrdiff_t pad, ptrdiff_t k,
                              ptrdiff_t out)
{
    ptrdiff_t before = i + pad - k, last = (i + pad) / stride;
    return (span){before < 0 ? 0 : before / stride + 1, last < out ? last + 1 : out};
}

#endif
