/* conv_axis.h - windows of a dense convolution along rows or columns, for y and for dx.
 *
 *   dst[p] = sum over taps k of  src[p * stride + k * dilation - pad] * filter[k]
 *
 * y is this sum. dx is the same sum over dy, with the filter rotated by 180 degrees and
 * transposed: with a stride there is one sum for each phase of dx (position modulo stride), over
 * the taps that reach it. Each such sum is a pass. */
#ifndef DIRECT_CONV_AXIS_H
#define DIRECT_CONV_AXIS_H

#include <stddef.h>

#include "graph/op.h"

typedef struct {
    ptrdiff_t taps, stride, dilation, pad;
    ptrdiff_t src, dst;        /* positions of the axis; dst: of the pass */
    ptrdiff_t first, step;     /* positions of the pass in dst */
    ptrdiff_t filter, forward; /* tap k of the pass is tap `filter` + k * `forward` of the filter */
} conv_axis;

typedef struct {
    conv_axis h, w;
} conv_axes;

/* Returns the number of passes: 1 for y, the number of phases for dx. */
static inline ptrdiff_t conv_passes(const adj_conv_geom *g, int is_dx)
{
    return is_dx ? g->sh * g->sw : 1;
}

conv_axes conv_axes_of(const adj_conv_geom *g, int is_dx, ptrdiff_t pass);

/* True if a window reads outside of src. */
static inline int conv_reaches_padding(const conv_axis *a)
{
    return a->pad > 0 || (a->dst - 1) * a->stride + (a->taps - 1) * a->dilation - a->pad >= a->src;
}

/* Returns how many positions of src, padding included, n positions of dst read. */
static inline ptrdiff_t conv_reach(const conv_axis *a, ptrdiff_t n)
{
    return a->taps > 0 ? (n - 1) * a->stride + (a->taps - 1) * a->dilation + 1 : 0;
}

/* Positions from `first` up to, not including, `end`; empty if first >= end. */
typedef struct {
    ptrdiff_t first, end;
} conv_range;

/* Returns the taps of a position that read src, not padding. */
conv_range conv_taps_inside(const conv_axis *a, ptrdiff_t position);
/* Returns the positions of the pass for which a tap reads src. */
conv_range conv_positions_inside(const conv_axis *a, ptrdiff_t tap);

static inline int conv_is_whole(const conv_axis *a, conv_range taps)
{
    return taps.first == 0 && taps.end == a->taps;
}

#endif
