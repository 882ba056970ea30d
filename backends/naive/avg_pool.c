/* avg_pool.c - y[n,oh,ow,c] = the mean of x over the elements of the window inside the image,
 * and dx[n,ih,iw,c] = sum of dy / elements over the windows that cover ih, iw. */
#include "pool.h"

static inline ptrdiff_t elements(const adj_conv_geom *k, ptrdiff_t oh, ptrdiff_t ow)
{
    span h = window_of(oh, k->sh, k->pt, k->kh, k->ih);
    span w = window_of(ow, k->sw, k->pl, k->kw, k->iw);
    return (h.to - h.from) * (w.to - w.from);
}

/* Returns one result; x points to the image's channel. */
static inline A mean(const pool_call *p, const T *x, ptrdiff_t oh, ptrdiff_t ow)
{
    const adj_conv_geom *k = &p->k;
    span h = window_of(oh, k->sh, k->pt, k->kh, k->ih);
    span w = window_of(ow, k->sw, k->pl, k->kw, k->iw);
    A sum = 0;

    for (ptrdiff_t ih = h.from; ih < h.to; ih++)
        for (ptrdiff_t iw = w.from; iw < w.to; iw++)
            sum += ld(x + ih * p->x.h + iw * p->x.w);
    return sum / (A)elements(k, oh, ow);
}

/* Returns one element of dx; dy points to the image's channel. */
static inline A share(const pool_call *p, const T *dy, ptrdiff_t ih, ptrdiff_t iw)
{
    const adj_conv_geom *k = &p->k;
    span h = windows_at(ih, k->sh, k->pt, k->kh, k->oh);
    span w = windows_at(iw, k->sw, k->pl, k->kw, k->ow);
    A sum = 0;

    for (ptrdiff_t oh = h.from; oh < h.to; oh++)
        for (ptrdiff_t ow = w.from; ow < w.to; ow++)
            sum += ld(dy + oh * p->y.h + ow * p->y.w) / (A)elements(k, oh, ow);
    return sum;
}

/* Computes every element of the result from the same image and channel of the operand. */
static adj_status run(const adj_call *c, int is_grad)
{
    const pool_call p = pool_call_of(c);
    const strides from = is_grad ? p.y : p.x, to = is_grad ? p.x : p.y;
    const ptrdiff_t h = is_grad ? p.k.ih : p.k.oh, w = is_grad ? p.k.iw : p.k.ow;
    const T *x = operand(c, 0);
    ptrdiff_t rows = p.k.n * h;
    T *y = c->out[0];

#pragma omp parallel for if (rows * w * p.k.ic > PARALLEL_POOL)
    for (ptrdiff_t r = 0; r < rows; r++) {
        ptrdiff_t n = r / h, i = r % h;
        for (ptrdiff_t j = 0; j < w; j++)
            for (ptrdiff_t k = 0; k < p.k.ic; k++) {
                const T *plane = x + n * from.n + k * from.c;
                st(y + n * to.n + i * to.h + j * to.w + k * to.c,
                   is_grad ? share(&p, plane, i, j) : mean(&p, plane, i, j));
            }
    }
    return ADJ_OK;
}

adj_status KERNEL(avg_pool)(const adj_call *c) { return run(c, 0); }
adj_status KERNEL(avg_pool_grad)(const adj_call *c) { return run(c, 1); }
