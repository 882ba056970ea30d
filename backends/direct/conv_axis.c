/* conv_axis.c - see conv_axis.h. */
#include "conv_axis.h"

#include "arith.h"
#include "direct.h"
#include "half.h"

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

int conv_fits_bf16(const adj_conv_geom *g, int64_t element, int64_t max_channels)
{
    const int64_t max_bytes = 1 << 30; /* bytes of an image */
    return direct_conv_fits(g, 1 << 15) && g->groups == 1 && g->kh <= CONV_BF16_KERNEL &&
           g->kw <= CONV_BF16_KERNEL && g->sh <= CONV_BF16_STRIDE && g->sw <= CONV_BF16_STRIDE &&
           g->dh <= 64 && g->dw <= 64 && g->ic <= max_channels && g->oc <= max_channels &&
           g->n <= 1 << 24 && g->n > 0 && g->ic > 0 && g->oc > 0 && g->oh > 0 && g->ow > 0 &&
           g->ih > 0 && g->iw > 0 && g->ih * g->iw * g->ic * element < max_bytes &&
           g->oh * g->ow * g->oc * element < max_bytes;
}

/* ---- one position by the definition ---- */

enum { LANES = 16 };

/* Loads an element, with a test of the type for each: this path is rare and need not be fast. */
static double load(adj_dtype dtype, const void *x, ptrdiff_t i)
{
    if (dtype == ADJ_BF16)
        return (double)widen_bf16(((const uint16_t *)x)[i]);
    return dtype == ADJ_F64 ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

/* Returns the offset of the filter's first element for row i and column j of the pass's taps. */
static ptrdiff_t tap_of(const conv_plain *p, ptrdiff_t i, ptrdiff_t j)
{
    const conv_axis *h = &p->pass.h, *w = &p->pass.w;
    const ptrdiff_t row = h->filter + i * h->forward, column = w->filter + j * w->forward;
    return (row * p->kw + column) * p->of_tap;
}

/* Adds the pixel at x times the tap to sum, for outputs from `output` on. */
static void add_tap(const conv_plain *p, ptrdiff_t x, ptrdiff_t tap, ptrdiff_t output, ptrdiff_t n,
                    double sum[LANES])
{
    tap += (output - p->first) * p->of_output;
    for (ptrdiff_t c = 0; c < p->inputs; c++)
        for (ptrdiff_t o = 0; o < n; o++)
            sum[o] += load(p->dtype, p->src, x + c) *
                      load(p->dtype, p->filter, tap + c * p->of_input + o * p->of_output);
}

static void add_window(const conv_plain *p, ptrdiff_t row, ptrdiff_t column, ptrdiff_t output,
                       ptrdiff_t n, double sum[LANES])
{
    const conv_axis *h = &p->pass.h, *w = &p->pass.w;
    for (ptrdiff_t i = 0; i < h->taps; i++)
        for (ptrdiff_t j = 0; j < w->taps; j++) {
            const ptrdiff_t y = row * h->stride + i * h->dilation - h->pad;
            const ptrdiff_t x = column * w->stride + j * w->dilation - w->pad;
            if (y >= 0 && y < h->src && x >= 0 && x < w->src)
                add_tap(p, (y * w->src + x) * p->inputs, tap_of(p, i, j), output, n, sum);
        }
}

void conv_plain_position(const conv_plain *p, ptrdiff_t row, ptrdiff_t column, ptrdiff_t first,
                         ptrdiff_t end, void *dst)
{
    for (ptrdiff_t output = first; output < end; output += LANES) {
        const ptrdiff_t n = min(end - output, LANES);
        double sum[LANES] = {0};
        add_window(p, row, column, output, n, sum);
        for (ptrdiff_t o = 0; o < n; o++) {
            const double bias = p->bias != NULL ? load(p->dtype, p->bias, output + o) : 0;
            adj_store(p->dtype, dst, output + o, sum[o] + bias);
        }
    }
}
