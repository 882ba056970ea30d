/* plain.c - a band of f32 with numbers that have no parts in bf16: see conv_bf16.h. As the
 * definition is written. */
#include "backends/direct/arith.h"
#include "conv_bf16.h"

enum { LANES = CONV_BF16_LANES };

typedef struct {
    const conv_bf16 *p;
    const conv_bf16_pass *a;
    const float *src, *filter;
} operands;

/* The filter's row i and column j, of taps of the pass. */
static const float *tap_of(const operands *s, ptrdiff_t i, ptrdiff_t j)
{
    const conv_bf16_axis *h = &s->a->h, *w = &s->a->w;
    const ptrdiff_t row = h->filter + i * h->forward, column = w->filter + j * w->forward;
    return s->filter + (row * s->p->kw + column) * s->p->src.c * s->p->dst.c;
}

/* sum[o] += x * the tap, outputs from `output` on. */
static void add_tap(const operands *s, const float *x, const float *tap, ptrdiff_t output,
                    ptrdiff_t n, double sum[LANES])
{
    const ptrdiff_t inputs = s->p->src.c, outputs = s->p->dst.c;
    const ptrdiff_t of_input = s->p->is_turned ? 1 : outputs;
    const ptrdiff_t of_output = s->p->is_turned ? inputs : 1;
    for (ptrdiff_t c = 0; c < inputs; c++)
        for (ptrdiff_t o = 0; o < n; o++)
            sum[o] += (double)x[c] * tap[c * of_input + (output + o) * of_output];
}

/* Of the image, at the pass' row and column. */
static void add_window(const operands *s, ptrdiff_t row, ptrdiff_t column, ptrdiff_t output,
                       ptrdiff_t n, double sum[LANES])
{
    const conv_bf16_axis *h = &s->a->h, *w = &s->a->w;
    for (ptrdiff_t i = 0; i < h->taps; i++)
        for (ptrdiff_t j = 0; j < w->taps; j++) {
            const ptrdiff_t y = row * h->stride + i * h->dilation - h->pad;
            const ptrdiff_t x = column * w->stride + j * w->dilation - w->pad;
            if (y >= 0 && y < h->src && x >= 0 && x < w->src)
                add_tap(s, s->src + (y * w->src + x) * s->p->src.c, tap_of(s, i, j), output, n,
                        sum);
        }
}

void conv_bf16_plain(const conv_bf16 *p, const conv_bf16_pass *a, conv_bf16_band b,
                     const adj_call *c)
{
    const float *bias = p->bias_in >= 0 ? c->in[p->bias_in] : NULL;
    const operands s = {p, a,
                        (const float *)c->in[p->src_in] + b.image * p->src.h * p->src.w * p->src.c,
                        c->in[p->filter_in]};
    const ptrdiff_t end = b.output + b.outputs;
    for (ptrdiff_t row = b.row; row < b.row + p->rows && row < a->h.dst; row++)
        for (ptrdiff_t column = 0; column < a->w.dst; column++) {
            const ptrdiff_t y = b.image * p->dst.h + a->h.first + row * a->h.step;
            const ptrdiff_t x = a->w.first + column * a->w.step;
            float *dst = (float *)c->out[0] + (y * p->dst.w + x) * p->dst.c;
            for (ptrdiff_t output = b.output; output < end; output += LANES) {
                const ptrdiff_t n = min(end - output, LANES);
                double sum[LANES] = {0};
                add_window(&s, row, column, output, n, sum);
                for (ptrdiff_t o = 0; o < n; o++)
                    dst[output + o] =
                        (float)(sum[o] + (bias != NULL ? (double)bias[output + o] : 0));
            }
        }
}
