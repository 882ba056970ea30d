/* avg_pool.c - y[n,oh,ow,c] = the mean of x over the elements of the window that exist, and
 * dx[n,ih,iw,c] = sum of dy / elements over the windows that cover ih, iw. */
#include "pool.h"

static inline ptrdiff_t elements(const adj_conv_geom *k, ptrdiff_t oh, ptrdiff_t ow)
{
    span h = window_of(oh, k->sh, k->pt, k->kh, k->ih);
    span w = window_of(ow, k->sw, k->pl, k->kw, k->iw);
    return (h.to - h.from) * (w.to - w.from);
}

/* One result: x points to the image's channel. */
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

adj_status KERNEL(avg_pool)(const adj_call *c)
{
    const pool_call p = pool_call_of(c);
    const T *x = operand(c, 0);
    ptrdiff_t rows = p.k.n * p.k.oh;
    T *y = c->out[0];

#pragma omp parallel for if (rows * p.k.ow * p.k.oc > PARALLEL_POOL)
    for (ptrdiff_t r = 0; r < rows; r++) {
        ptrdiff_t n = r / p.k.oh, oh = r % p.k.oh;
        for (ptrdiff_t ow = 0; ow < p.k.ow; ow++)
            for (ptrdiff_t oc = 0; oc < p.k.oc; oc++)
                st(y + n * p.y.n + oh * p.y.h + ow * p.y.w + oc * p.y.c,
                   mean(&p, x + n * p.x.n + oc * p.x.c, oh, ow));
    }
    return ADJ_OK;
}

/* One element of dx: dy points to the image's channel. */
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

adj_status KERNEL(avg_pool_grad)(const adj_call *c)
{
    const pool_call p = pool_call_of(c);
    const T *dy = operand(c, 0);
    ptrdiff_t rows = p.k.n * p.k.ih;
    T *dx = c->out[0];

#pragma omp parallel for if (rows * p.k.iw * p.k.ic > PARALLEL_POOL)
    for (ptrdiff_t r = 0; r < rows; r++) {
        ptrdiff_t n = r / p.k.ih, ih = r % p.k.ih;
        for (ptrdiff_t iw = 0; iw < p.k.iw; iw++)
            for (ptrdiff_t ic = 0; ic < p.k.ic; ic++)
                st(dx + n * p.x.n + ih * p.x.h + iw * p.x.w + ic * p.x.c,
                   share(&p, dy + n * p.y.n + ic * p.y.c, ih, iw));
    }
    return ADJ_OK;
}
