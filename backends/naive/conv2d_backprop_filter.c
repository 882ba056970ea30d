/* conv2d_backprop_filter.c - dw[kh,kw,c,o] = sum over n, oh, ow of x[n, oh*sh + kh*dh - pt,
 * ow*sw + kw*dw - pl, c] * dy[n,oh,ow,o]; with groups, c counts within o's group.
 *
 * The (kh, kw, c) are distributed to threads: each sum is computed by one thread, in the order
 * n, oh, ow. */
#include "conv.h"

typedef struct {
    conv_call v;
    const T *x, *dy;
    T *dw;
} operands;

/* Computes results first .. first+count of one set for one (kh, kw, c). */
static void block(const operands *p, const ptrdiff_t tap[3], ptrdiff_t set, ptrdiff_t first,
                  ptrdiff_t count)
{
    const adj_conv_geom *k = &p->v.k;
    strides in = p->v.in, out = p->v.out;
    const lanes l = lanes_of(k);
    ptrdiff_t channels = k->ic / k->groups, o = set * l.set + first * l.step;
    const T *x = p->x + (set * l.c_set + first * l.c_step + tap[2]) * in.c;
    ptrdiff_t images = images_of(k);
    A sum[BLOCK] = {0};

    for (ptrdiff_t n = 0; n < images; n++)
        for (ptrdiff_t oh = 0; oh < k->oh; oh++) {
            ptrdiff_t ih = input_at(oh, k->sh, tap[0], k->dh, k->pt, k->ih);
            if (ih < 0)
                continue;
            for (ptrdiff_t ow = 0; ow < k->ow; ow++) {
                ptrdiff_t iw = input_at(ow, k->sw, tap[1], k->dw, k->pl, k->iw);
                if (iw < 0)
                    continue;
                const T *at = x + n * in.n + ih * in.h + iw * in.w;
                const T *dy = p->dy + n * out.n + oh * out.h + ow * out.w + o * out.c;
                if (l.c_step == 0)
                    add_scaled(sum, ld(at), dy, out.c, count);
                else
                    add_products(sum, at, in.c, dy, l.step * out.c, count);
            }
        }
    T *dw = p->dw + ((tap[0] * k->kw + tap[1]) * channels + tap[2]) * k->oc + o;
    for (ptrdiff_t i = 0; i < count; i++)
        st(dw + i * l.step, sum[i]);
}

adj_status KERNEL(conv2d_backprop_filter)(const adj_call *c)
{
    operands p = {conv_call_of(c), operand(c, 0), operand(c, 1), c->out[0]};
    const adj_conv_geom k = p.v.k;
    const lanes l = lanes_of(&k);

#pragma omp parallel for collapse(3)                                                               \
    schedule(static) if ((double)k.n * k.oh * k.ow * k.oc * k.kh * k.kw > PARALLEL_ABOVE)
    for (ptrdiff_t kh = 0; kh < k.kh; kh++)
        for (ptrdiff_t kw = 0; kw < k.kw; kw++)
            for (ptrdiff_t channel = 0; channel < k.ic / k.groups; channel++)
                for (ptrdiff_t set = 0; set < l.sets; set++)
                    for (ptrdiff_t first = 0; first < l.n; first += BLOCK)
                        block(&p, (ptrdiff_t[]){kh, kw, channel}, set, first,
                              at_most_block(l.n - first));
    return ADJ_OK;
}
