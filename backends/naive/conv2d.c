/* conv2d.c - y[n,oh,ow,o] = sum over kh, kw, c of x[n, oh*sh + kh*dh - pt, ow*sw + kw*dw - pl, c] *
 * w[kh,kw,c,o]; with groups, c runs over the channels of o's group. */
#include "conv.h"

typedef struct {
    conv_call v;
    const T *x, *w;
    T *y;
} operands;

/* Results first .. first+count of one pixel, all in one group. o is innermost: contiguous in w. */
static void block(const operands *p, const ptrdiff_t pixel[3], ptrdiff_t first, ptrdiff_t count)
{
    const adj_conv_geom *k = &p->v.k;
    steps in = p->v.in, out = p->v.out;
    ptrdiff_t channels = k->ic / k->groups, group = first / (k->oc / k->groups);
    const T *x = p->x + pixel[0] * in.n + group * channels * in.c;
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
                A xc = ld(x + ih * in.h + iw * in.w + c * in.c);
                const T *w = p->w + ((kh * k->kw + kw) * channels + c) * k->oc + first;
                for (ptrdiff_t o = 0; o < count; o++)
                    sum[o] += xc * ld(w + o);
            }
        }
    }
    T *y = p->y + pixel[0] * out.n + pixel[1] * out.h + pixel[2] * out.w + first * out.c;
    for (ptrdiff_t o = 0; o < count; o++)
        st(y + o * out.c, sum[o]);
}

adj_status KERNEL(conv2d)(const adj_call *c)
{
    operands p = {conv_call_of(c), operand(c, 0), operand(c, 1), c->out[0]};
    const adj_conv_geom k = p.v.k;
    ptrdiff_t of_group = k.oc / k.groups;

#pragma omp parallel for collapse(3)                                                               \
    schedule(static) if ((double)k.n * k.oh * k.ow * k.oc * k.kh * k.kw > PARALLEL_ABOVE)
    for (ptrdiff_t n = 0; n < k.n; n++)
        for (ptrdiff_t oh = 0; oh < k.oh; oh++)
            for (ptrdiff_t ow = 0; ow < k.ow; ow++)
                for (ptrdiff_t group = 0; group < k.groups; group++)
                    for (ptrdiff_t o = 0; o < of_group; o += BLOCK)
                        block(&p, (ptrdiff_t[]){n, oh, ow}, group * of_group + o,
                              at_most_block(of_group - o));
    return ADJ_OK;
}
