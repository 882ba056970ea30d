/* depthwise_conv2d.c - the depthwise convolution and its two adjoints. With M the multiplier:
 *
 *   y[n,oh,ow,c*M+m]  = sum over kh, kw     of x[n,ih,iw,c] * w[kh,kw,c,m]
 *   dx[n,ih,iw,c]     = sum over kh, kw, m  of dy[n,oh,ow,c*M+m] * w[kh,kw,c,m]
 *   dw[kh,kw,c,m]     = sum over n, oh, ow  of x[n,ih,iw,c] * dy[n,oh,ow,c*M+m]
 *
 * with ih = oh*sh + kh*dh - pt, iw = ow*sw + kw*dw - pl. Blocks are of channels c, for one m. */
#include "conv.h"

typedef struct {
    conv_call v;
    const T *a, *b; /* the node's operands */
    T *result;
    ptrdiff_t multiplier;
} operands;

static operands operands_of(const adj_call *c)
{
    conv_call v = conv_call_of(c);
    return (operands){v, operand(c, 0), operand(c, 1), c->out[0], v.k.oc / v.k.ic};
}

static int is_large(const adj_conv_geom *k)
{
    return (double)k->n * k->oh * k->ow * k->oc * k->kh * k->kw > PARALLEL_ABOVE;
}

/* y[pixel, (first .. first+count)*M + m] */
static void forward(const operands *p, const ptrdiff_t pixel[3], ptrdiff_t m, ptrdiff_t first,
                    ptrdiff_t count)
{
    const adj_conv_geom *k = &p->v.k;
    steps in = p->v.in, out = p->v.out;
    ptrdiff_t M = p->multiplier;
    A sum[BLOCK] = {0};

    for (ptrdiff_t kh = 0; kh < k->kh; kh++) {
        ptrdiff_t ih = input_at(pixel[1], k->sh, kh, k->dh, k->pt, k->ih);
        if (ih < 0)
            continue;
        for (ptrdiff_t kw = 0; kw < k->kw; kw++) {
            ptrdiff_t iw = input_at(pixel[2], k->sw, kw, k->dw, k->pl, k->iw);
            if (iw < 0)
                continue;
            const T *x = p->a + pixel[0] * in.n + ih * in.h + iw * in.w + first * in.c;
            const T *w = p->b + ((kh * k->kw + kw) * k->ic + first) * M + m;
            for (ptrdiff_t c = 0; c < count; c++)
                sum[c] += ld(x + c * in.c) * ld(w + c * M);
        }
    }
    T *y = p->result + pixel[0] * out.n + pixel[1] * out.h + pixel[2] * out.w +
           (first * M + m) * out.c;
    for (ptrdiff_t c = 0; c < count; c++)
        st(y + c * M * out.c, sum[c]);
}

adj_status KERNEL(depthwise_conv2d_native)(const adj_call *call)
{
    operands p = operands_of(call);
    const adj_conv_geom k = p.v.k;

#pragma omp parallel for collapse(3) schedule(static) if (is_large(&k))
    for (ptrdiff_t n = 0; n < k.n; n++)
        for (ptrdiff_t oh = 0; oh < k.oh; oh++)
            for (ptrdiff_t ow = 0; ow < k.ow; ow++)
                for (ptrdiff_t m = 0; m < p.multiplier; m++)
                    for (ptrdiff_t c = 0; c < k.ic; c += BLOCK)
                        forward(&p, (ptrdiff_t[]){n, oh, ow}, m, c, at_most_block(k.ic - c));
    return ADJ_OK;
}

/* dx[pixel, first .. first+count] */
static void backprop_input(const operands *p, const ptrdiff_t pixel[3], ptrdiff_t first,
                           ptrdiff_t count)
{
    const adj_conv_geom *k = &p->v.k;
    steps in = p->v.in, out = p->v.out;
    ptrdiff_t M = p->multiplier;
    A sum[BLOCK] = {0};

    for (ptrdiff_t kh = 0; kh < k->kh; kh++) {
        ptrdiff_t oh = output_at(pixel[1], k->sh, kh, k->dh, k->pt, k->oh);
        if (oh < 0)
            continue;
        for (ptrdiff_t kw = 0; kw < k->kw; kw++) {
            ptrdiff_t ow = output_at(pixel[2], k->sw, kw, k->dw, k->pl, k->ow);
            if (ow < 0)
                continue;
            const T *w = p->a + ((kh * k->kw + kw) * k->ic + first) * M;
            const T *dy = p->b + pixel[0] * out.n + oh * out.h + ow * out.w + first * M * out.c;
            for (ptrdiff_t m = 0; m < M; m++)
                for (ptrdiff_t c = 0; c < count; c++)
                    sum[c] += ld(dy + (c * M + m) * out.c) * ld(w + c * M + m);
        }
    }
    T *dx = p->result + pixel[0] * in.n + pixel[1] * in.h + pixel[2] * in.w + first * in.c;
    for (ptrdiff_t c = 0; c < count; c++)
        st(dx + c * in.c, sum[c]);
}

adj_status KERNEL(depthwise_conv2d_native_backprop_input)(const adj_call *call)
{
    operands p = operands_of(call);
    const adj_conv_geom k = p.v.k;

#pragma omp parallel for collapse(3) schedule(static) if (is_large(&k))
    for (ptrdiff_t n = 0; n < k.n; n++)
        for (ptrdiff_t ih = 0; ih < k.ih; ih++)
            for (ptrdiff_t iw = 0; iw < k.iw; iw++)
                for (ptrdiff_t c = 0; c < k.ic; c += BLOCK)
                    backprop_input(&p, (ptrdiff_t[]){n, ih, iw}, c, at_most_block(k.ic - c));
    return ADJ_OK;
}

/* dw[kh, kw, first .. first+count, m] with tap = {kh, kw} */
static void backprop_filter(const operands *p, const ptrdiff_t tap[2], ptrdiff_t m, ptrdiff_t first,
                            ptrdiff_t count)
{
    const adj_conv_geom *k = &p->v.k;
    steps in = p->v.in, out = p->v.out;
    ptrdiff_t M = p->multiplier;
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
                const T *x = p->a + n * in.n + ih * in.h + iw * in.w + first * in.c;
                const T *dy = p->b + n * out.n + oh * out.h + ow * out.w + (first * M + m) * out.c;
                for (ptrdiff_t c = 0; c < count; c++)
                    sum[c] += ld(x + c * in.c) * ld(dy + c * M * out.c);
            }
        }
    T *dw = p->result + ((tap[0] * k->kw + tap[1]) * k->ic + first) * M + m;
    for (ptrdiff_t c = 0; c < count; c++)
        st(dw + c * M, sum[c]);
}

adj_status KERNEL(depthwise_conv2d_native_backprop_filter)(const adj_call *call)
{
    operands p = operands_of(call);
    const adj_conv_geom k = p.v.k;

#pragma omp parallel for collapse(3) schedule(static) if (is_large(&k))
    for (ptrdiff_t kh = 0; kh < k.kh; kh++)
        for (ptrdiff_t kw = 0; kw < k.kw; kw++)
            for (ptrdiff_t m = 0; m < p.multiplier; m++)
                for (ptrdiff_t c = 0; c < k.ic; c += BLOCK)
                    backprop_filter(&p, (ptrdiff_t[]){kh, kw}, m, c, at_most_block(k.ic - c));
    return ADJ_OK;
}
