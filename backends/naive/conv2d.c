/* conv2d.c - y[n,oh,ow,o] = sum over kh, kw, c of x[n, oh*sh + kh*dh - pt, ow*sw + kw*dw - pl, c] *
 * w[kh,kw,c,o]; with groups, c runs over the channels of o's group. depthwise_conv2d_native is the
 * same with a group for each channel: its filter [kh,kw,c,m] lies in memory as [kh,kw,1,c*M+m]. */
#include "conv.h"

typedef struct {
    conv_call v;
    const T *x, *w;
    T *y;
} operands;

/* Computes results first .. first+count of one pixel and set. */
static void block(const operands *p, const ptrdiff_t pixel[3], ptrdiff_t set, ptrdiff_t first,
                  ptrdiff_t count)
{
    const adj_conv_geom *k = &p->v.k;
    strides in = p->v.in, out = p->v.out;
    const lanes l = lanes_of(k);
    ptrdiff_t channels = k->ic / k->groups, o = set * l.set + first * l.step;
    const T *x = p->x + pixel[0] * in.n + (set * l.c_set + first * l.c_step) * in.c;
    A sum[BLOCK] = {0};

    for (ptrdiff_t kh = 0; kh < k->kh; kh++) {
        ptrdiff_t ih = input_at(pixel[1], k->sh, kh, k->dh, k->pt, k->ih);
        if (ih < 0)
            continue;
        for (ptrdiff_t kw = 0; kw < k->kw; kw++) {
            ptrdiff_t iw = input_at(pixel[2], k->sw, kw, k->dw, k->pl, k->iw);
            if (iw < 0)
                continue;
            for (ptrdiff_t c = 0; c < channels; c++) {
                const T *xc = x + ih * in.h + iw * in.w + c * in.c;
                const T *w = p->w + ((kh * k->kw + kw) * channels + c) * k->oc + o;
                if (l.c_step == 0) /* o is innermost: contiguous in w */
                    add_scaled(sum, ld(xc), w, 1, count);
                else
                    add_products(sum, xc, in.c, w, l.step, count);
            }
        }
    }
    T *y = p->y + pixel[0] * out.n + pixel[1] * out.h + pixel[2] * out.w + o * out.c;
    for (ptrdiff_t i = 0; i < count; i++)
        st(y + i * l.step * out.c, sum[i]);
}

adj_status KERNEL(conv2d)(const adj_call *c)
{
    operands p = {conv_call_of(c), operand(c, 0), operand(c, 1), c->out[0]};
    const adj_conv_geom k = p.v.k;
    const lanes l = lanes_of(&k);

#pragma omp parallel for collapse(3)                                                               \
    schedule(static) if ((double)k.n * k.oh * k.ow * k.oc * k.kh * k.kw > PARALLEL_ABOVE)
    for (ptrdiff_t n = 0; n < k.n; n++)
        for (ptrdiff_t oh = 0; oh < k.oh; oh++)
            for (ptrdiff_t ow = 0; ow < k.ow; ow++)
                for (ptrdiff_t set = 0; set < l.sets; set++)
                    for (ptrdiff_t first = 0; first < l.n; first += BLOCK)
                        block(&p, (ptrdiff_t[]){n, oh, ow}, set, first, at_most_block(l.n - first));
    return ADJ_OK;
}
