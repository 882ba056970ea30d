/* conv_plain.c - see conv_plain.h. */
#include "conv_plain.h"

#include "arith.h"
#include "half.h"

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
