/* conv_axis.h - windows of a dense convolution along rows or columns, for y and for dx.
 *
 *   dst[p] = sum over taps k of  src[p * stride + k * dilation - pad] * filter[k]
 *
 * y is that. So is dx, of dy and the filter turned by 180 degrees and transposed: with a stride one
 * sum for each phase of dx (position modulo stride), by the taps that reach it. Each is a pass. */
#ifndef DIRECT_CONV_AXIS_H
#define DIRECT_CONV_AXIS_H

#include <stddef.h>

#include "adjoint_ext.h"

typedef struct {
    ptrdiff_t taps, stride, dilation, pad;
    ptrdiff_t src, dst;        /* positions there are; dst: of the pass */
    ptrdiff_t first, step;     /* of the pass' positions, in dst */
    ptrdiff_t filter, forward; /* tap k is the filter's `filter` + k * `forward` */
} conv_axis;

typedef struct {
    conv_axis h, w;
} conv_axes;

/* How many passes there are: 1, or of dx the phases. */
static inline ptrdiff_t conv_passes(const adj_conv_geom *g, int is_dx)
{
    return is_dx ? g->sh * g->sw : 1;
}

conv_axes conv_axes_of(const adj_conv_geom *g, int is_dx, ptrdiff_t pass);

/* Does a window read a position that src has not? */
static inline int conv_reaches_padding(const conv_axis *a)
{
    return a->pad > 0 || (a->dst - 1) * a->stride + (a->taps - 1) * a->dilation - a->pad >= a->src;
}

/* The positions of src, with padding, that n of dst read. */
static inline ptrdiff_t conv_reach(const conv_axis *a, ptrdiff_t n)
{
    return a->taps > 0 ? (n - 1) * a->stride + (a->taps - 1) * a->dilation + 1 : 0;
}

/* Those from `first` on, up to `end`; none: first >= end. */
typedef struct {
    ptrdiff_t first, end;
} conv_range;

/* The taps of a position that read src, not padding. */
conv_range conv_taps_inside(const conv_axis *a, ptrdiff_t position);
/* The pass' positions for which a tap reads src. */
conv_range conv_positions_inside(const conv_axis *a, ptrdiff_t tap);

static inline int conv_is_whole(const conv_axis *a, conv_range taps)
{
    return taps.first == 0 && taps.end == a->taps;
}

#endif
