/* channels.h - a view of a tensor around its channels: the last axis (NHWC) or axis 1 (NCHW). */
#ifndef NAIVE_CHANNELS_H
#define NAIVE_CHANNELS_H

#include "graph/op.h"

static inline int channel_axis(adj_shape x, int64_t format)
{
    return format == ADJ_NCHW ? 1 : (int)x.rank - 1;
}

/* The tensor as [outer, c, inner]; inner is 1 if channels are last. */
typedef struct {
    ptrdiff_t outer, c, inner;
} channels;

static inline channels channels_of(adj_shape x, int64_t format)
{
    int axis = channel_axis(x, format);
    channels v = {1, x.dim[axis], 1};
    for (int i = 0; i < x.rank; i++) {
        v.outer *= i < axis ? x.dim[i] : 1;
        v.inner *= i > axis ? x.dim[i] : 1;
    }
    return v;
}

#endif
