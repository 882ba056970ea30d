/* plain.c - computes a band of f32 with numbers that cannot be split into bf16 parts, by the
 * definition's loops: see conv_bf16.h. */
#include "backends/direct/arith.h"
#include "backends/direct/conv_plain.h"
#include "conv_bf16.h"

void conv_bf16_plain(const conv_bf16 *p, const conv_bf16_pass *a, conv_bf16_band b,
                     const adj_call *c)
{
    conv_plain plain = {.pass = {a->h, a->w},
                        .dtype = ADJ_F32,
                        .kw = p->kw,
                        .inputs = p->src.c,
                        .src = (const float *)c->in[p->src_in] +
                               b.image * p->src.h * p->src.w * p->src.c,
                        .bias = p->bias_in >= 0 ? c->in[p->bias_in] : NULL};
    conv_plain_set_filter(&plain, c->in[p->filter_in], p->dst.c, p->is_turned);
    for (ptrdiff_t row = b.row; row < b.row + p->rows && row < a->h.dst; row++)
        for (ptrdiff_t column = 0; column < a->w.dst; column++) {
            const ptrdiff_t y = b.image * p->dst.h + a->h.first + row * a->h.step;
            const ptrdiff_t x = a->w.first + column * a->w.step;
            float *dst = (float *)c->out[0] + (y * p->dst.w + x) * p->dst.c;
            conv_plain_position(&plain, row, column, b.output, b.output + b.outputs, dst);
        }
}
