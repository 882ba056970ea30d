/* plain.c - a band of f32 with numbers that have no parts in bf16: see conv_bf16.h. As the
 * definition is written; rare. */
#include "conv_bf16.h"

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

static double dot(const operands *s, const float *x, const float *tap, ptrdiff_t output)
{
    const ptrdiff_t inputs = s->p->src.c, outputs = s->p->dst.c;
    const ptrdiff_t step = s->p->is_turned ? 1 : outputs;
    const float *w = tap + (s->p->is_turned ? output * inputs : output);
    double sum = 0;
    for (ptrdiff_t c = 0; c < inputs; c++)
        sum += (double)x[c] * w[c * step];
    return sum;
}

/* Of the image, at the pass' row and column. */
static double sum_at(const operands *s, ptrdiff_t row, ptrdiff_t column, ptrdiff_t output)
{
    const conv_bf16_axis *h = &s->a->h, *w = &s->a->w;
    double sum = 0;
    for (ptrdiff_t i = 0; i < h->taps; i++)
        for (ptrdiff_t j = 0; j < w->taps; j++) {
            const ptrdiff_t y = row * h->stride + i * h->dilation - h->pad;
            const ptrdiff_t x = column * w->stride + j * w->dilation - w->pad;
            if (y >= 0 && y < h->src && x >= 0 && x < w->src)
                sum += dot(s, s->src + (y * w->src + x) * s->p->src.c, tap_of(s, i, j), output);
        }
    return sum;
}

void conv_bf16_plain(const conv_bf16 *p, const conv_bf16_pass *a, conv_bf16_band b,
                     const adj_call *c)
{
    const float *bias = p->bias_in >= 0 ? c->in[p->bias_in] : NULL;
    const operands s = {p, a,
                        (const float *)c->in[p->src_in] + b.image * p->src.h * p->src.w * p->src.c,
                        c->in[p->filter_in]};
    for (ptrdiff_t row = b.row; row < b.row + p->rows && row < a->h.dst; row++)
        for (ptrdiff_t column = 0; column < a->w.dst; column++) {
            const ptrdiff_t y = b.image * p->dst.h + a->h.first + row * a->h.step;
            const ptrdiff_t x = a->w.first + column * a->w.step;
            float *dst = (float *)c->out[0] + (y * p->dst.w + x) * p->dst.c;
            for (ptrdiff_t o = b.output; o < b.output + b.outputs; o++)
                dst[o] = (float)(sum_at(&s, row, column, o) + (bias != NULL ? (double)bias[o] : 0));
        }
}
