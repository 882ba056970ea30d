/* conv_axis.h - windows of a dense convolution along rows or columns, for y and for dx, and the
 * sum over one window by the definition.
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

enum { CONV_BF16_KERNEL = 11, CONV_BF16_STRIDE = 2 }; /* the largest ones of kernels in bf16 */

/* True if kernels in bf16 take the convolution, whose elements have that many bytes and whose
 * pixels at most max_channels of them: offsets in an image must fit 32 bits. */
int conv_fits_bf16(const adj_conv_geom *g, int64_t element, int64_t max_channels);

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

/* ---- one position by the definition, summed in double: for operands with numbers that a fast
 * kernel would spread beyond their windows. For f32, f64 and bf16 ---- */

typedef struct {
    conv_axes pass;
    adj_dtype dtype;
    ptrdiff_t kw, inputs;                         /* columns of the filter; channels of src */
    const void *src, *bias;                       /* src: one image; bias: NULL if none */
    const void *filter;                           /* begins at output `first` */
    ptrdiff_t first, of_tap, of_input, of_output; /* first output; to the next tap, input, output */
} conv_plain;

/* Sets the filter in its memory order: for dx it is rotated and has outputs before inputs. */
static inline void conv_plain_set_filter(conv_plain *p, const void *filter, ptrdiff_t outputs,
                                         int is_turned)
{
    p->filter = filter;
    p->first = 0;
    p->of_tap = p->inputs * outputs;
    p->of_input = is_turned ? 1 : outputs;
    p->of_output = is_turned ? p->inputs : 1;
}

/* Sets dst[o] to the sum at position (row, column) of the pass, for outputs from `first` to
 * `end`. */
void conv_plain_position(const conv_plain *p, ptrdiff_t row, ptrdiff_t column, ptrdiff_t first,
                         ptrdiff_t end, void *dst);

#endif
