/* conv_axis.c - see conv_axis.h. */
#include "conv_axis.h"

#include "arith.h"

/* One axis of a convolution as its attributes give it. */
typedef struct {
    ptrdiff_t in, out, kernel, stride, dilation, pad;
} extent;

static conv_axis axis_of_y(extent e)
{
    return (conv_axis){.taps = e.kernel,
                       .stride = e.stride,
                       .dilation = e.dilation,
                       .pad = e.pad,
                       .src = e.in,
                       .dst = e.out,
                       .step = 1,
                       .forward = 1};
}

/* Sets up dx's positions phase + r * stride: tap k reaches them from (phase + pad - k *
 * dilation) / stride + r of dy, if that is a whole number; the largest k reads the first
 * position. */
static conv_axis axis_of_dx(extent e, ptrdiff_t phase)
{
    const ptrdiff_t step = e.stride / gcd(e.stride, e.dilation);
    ptrdiff_t k = 0;
    while (k < step && (phase + e.pad - k * e.dilation) % e.stride != 0)
        k++;
    const int has_taps = k < step && k < e.kernel;
    const ptrdiff_t taps = has_taps ? divide_up(e.kernel - k, step) : 0;
    const ptrdiff_t last = k + (taps - 1) * step;
    return (conv_axis){.taps = taps,
                       .stride = 1,
                       .dilation = step * e.dilation / e.stride,
                       .pad = has_taps ? (last * e.dilation - phase - e.pad) / e.stride : 0,
                       .src = e.out,
                       .dst = divide_up(max(e.in - phase, 0), e.stride),
                       .first = phase,
                       .step = e.stride,
                       .filter = last,
                       .forward = -step};
}

conv_axes conv_axes_of(const adj_conv_geom *g, int is_dx, ptrdiff_t pass)
{
    const extent h = {g->ih, g->oh, g->kh, g->sh, g->dh, g->pt};
    const extent w = {g->iw, g->ow, g->kw, g->sw, g->dw, g->pl};
    if (!is_dx)
        return (conv_axes){axis_of_y(h), axis_of_y(w)};
    return (conv_axes){axis_of_dx(h, pass / g->sw), axis_of_dx(w, pass % g->sw)};
}

/* Returns the numbers i below n for which i * step + shift is from 0 to size - 1. */
static conv_range inside(ptrdiff_t n, ptrdiff_t step, ptrdiff_t shift, ptrdiff_t size)
{
    const ptrdiff_t first = shift < 0 ? divide_up(-shift, step) : 0;
    const ptrdiff_t end = size > shift ? divide_up(size - shift, step) : 0;
    return (conv_range){first, min(end, n)};
}

conv_range conv_taps_inside(const conv_axis *a, ptrdiff_t position)
{
    return inside(a->taps, a->dilation, position * a->stride - a->pad, a->src);
}

conv_range conv_positions_inside(const conv_axis *a, ptrdiff_t tap)
{
    return inside(a->dst, a->stride, tap * a->dilation - a->pad, a->src);
}
