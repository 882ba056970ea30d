/* max_pool.c - y[n,oh,ow,oc] = the maximum of x over the window, and the two gradients that follow
 * the window's first maximum in row-major order.
 *
 * A NaN is larger than any number, so a window with one gives NaN, and its first NaN takes the
 * gradient. A window over channels covers kc of them. */
#include "pool.h"

/* One result: image and channel by their offset, row and column by number. */
typedef struct {
    ptrdiff_t n, oh, ow, oc;
} place;

/* Offset in x of the first maximum of a result's window. */
static inline ptrdiff_t first_maximum(const pool_call *p, const T *x, place at)
{
    const adj_conv_geom *k = &p->k;
    span h = window_of(at.oh, k->sh, k->pt, k->kh, k->ih);
    span w = window_of(at.ow, k->sw, k->pl, k->kw, k->iw);
    ptrdiff_t corner = at.n * p->x.n + at.oc * p->kc * p->x.c;
    ptrdiff_t best = corner + h.from * p->x.h + w.from * p->x.w;
    A maximum = ld(x + best);

    for (ptrdiff_t ih = h.from; ih < h.to; ih++)
        for (ptrdiff_t iw = w.from; iw < w.to; iw++)
            for (ptrdiff_t c = 0; c < p->kc; c++) {
                ptrdiff_t i = corner + ih * p->x.h + iw * p->x.w + c * p->x.c;
                A v = ld(x + i);
                if (v > maximum || (v != v && maximum == maximum)) {
                    maximum = v;
                    best = i;
                }
            }
    return best;
}

/* y = from at each window's first maximum of x. */
static void gather(const adj_call *c, const T *x, const T *from)
{
    const pool_call p = pool_call_of(c);
    ptrdiff_t rows = p.k.n * p.k.oh;
    T *y = c->out[0];

#pragma omp parallel for if (rows * p.k.ow * p.k.oc > PARALLEL_POOL)
    for (ptrdiff_t r = 0; r < rows; r++) {
        ptrdiff_t n = r / p.k.oh, oh = r % p.k.oh;
        for (ptrdiff_t ow = 0; ow < p.k.ow; ow++)
            for (ptrdiff_t oc = 0; oc < p.k.oc; oc++)
                y[n * p.y.n + oh * p.y.h + ow * p.y.w + oc * p.y.c] =
                    from[first_maximum(&p, x, (place){n, oh, ow, oc})];
    }
}

adj_status KERNEL(max_pool)(const adj_call *c)
{
    const T *x = operand(c, 0);
    gather(c, x, x);
    return ADJ_OK;
}

adj_status KERNEL(max_pool_grad_grad)(const adj_call *c)
{
    gather(c, operand(c, 0), operand(c, 2));
    return ADJ_OK;
}

/* Windows overlap: sums are kept in A until all of a channel's windows are done. */
size_t KERNEL(max_pool_grad_scratch)(const adj_node *n)
{
    return (size_t)adj_shape_elems(n->type.shape) * sizeof(A);
}

adj_status KERNEL(max_pool_grad)(const adj_call *c)
{
    const pool_call p = pool_call_of(c);
    const T *x = operand(c, 0), *dy = operand(c, 2);
    ptrdiff_t size = adj_shape_elems(c->group->node[0]->type.shape), planes = p.k.n * p.k.oc;
    A *sum = c->scratch;
    T *dx = c->out[0];

    memset(sum, 0, (size_t)size * sizeof *sum); /* +0 in every type */
#pragma omp parallel for if (size > PARALLEL_POOL)
    for (ptrdiff_t plane = 0; plane < planes; plane++) {
        ptrdiff_t n = plane / p.k.oc, oc = plane % p.k.oc;
        for (ptrdiff_t oh = 0; oh < p.k.oh; oh++)
            for (ptrdiff_t ow = 0; ow < p.k.ow; ow++)
                sum[first_maximum(&p, x, (place){n, oh, ow, oc})] +=
                    ld(dy + n * p.y.n + oh * p.y.h + ow * p.y.w + oc * p.y.c);
    }
    for (ptrdiff_t i = 0; i < size; i++)
        st(dx + i, sum[i]);
    return ADJ_OK;
}
