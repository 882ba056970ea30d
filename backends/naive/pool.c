/* pool.c - max_pool: y[n,oh,ow,oc] = the maximum of x over the window, and the two gradients, which
 * go through the window's first maximum in row-major order. Also in two steps: the argmax, the
 * position (i*kw + j)*kc + c in the window as an i32, and the gradient from the argmax. A NaN is
 * larger than any number, so a window with one gives NaN, and its first NaN takes the gradient. A
 * window over channels covers kc of them.
 *
 * avg_pool: y[n,oh,ow,c] = the mean of x over the elements of the window inside the image, and
 * dx[n,ih,iw,c] = sum of dy / elements over the windows that cover ih, iw. */
#include "conv.h"

enum { PARALLEL_POOL = 1 << 12 }; /* windows that justify several threads */

typedef struct {
    adj_conv_geom k;
    ptrdiff_t kc;
    strides x, y;
} pool_call;

static inline pool_call pool_call_of(const adj_call *c)
{
    const adj_pool_attrs *a = c->group->node[0]->attrs;
    adj_conv_geom k = a->geom;
    return (pool_call){k, a->kc, strides_of(k.format, k.ih, k.iw, k.ic),
                       strides_of(k.format, k.oh, k.ow, k.oc)};
}

typedef struct {
    ptrdiff_t from, to; /* from <= i < to */
} span;

/* Returns the input positions inside window o: o*stride - pad and the k - 1 after it. */
static inline span window_of(ptrdiff_t o, ptrdiff_t stride, ptrdiff_t pad, ptrdiff_t k,
                             ptrdiff_t in)
{
    ptrdiff_t from = o * stride - pad, to = from + k;
    return (span){from > 0 ? from : 0, to < in ? to : in};
}

/* Returns the windows that contain input position i. */
static inline span windows_at(ptrdiff_t i, ptrdiff_t stride, ptrdiff_t pad, ptrdiff_t k,
                              ptrdiff_t out)
{
    ptrdiff_t before = i + pad - k, last = (i + pad) / stride;
    return (span){before < 0 ? 0 : before / stride + 1, last < out ? last + 1 : out};
}

/* ---- avg_pool ---- */

static inline ptrdiff_t window_elements(const adj_conv_geom *k, ptrdiff_t oh, ptrdiff_t ow)
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
    return sum / (A)window_elements(k, oh, ow);
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
            sum += ld(dy + oh * p->y.h + ow * p->y.w) / (A)window_elements(k, oh, ow);
    return sum;
}

/* Computes every element of the result from the same image and channel of the operand. */
static adj_status average(const adj_call *c, int is_grad)
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

adj_status KERNEL(avg_pool)(const adj_call *c) { return average(c, 0); }
adj_status KERNEL(avg_pool_grad)(const adj_call *c) { return average(c, 1); }

/* ---- max_pool ---- */

/* One result: offset of its image and channel, its row and its column. */
typedef struct {
    ptrdiff_t n, oh, ow, oc;
} place;

/* Returns the offset in x of the first maximum of a result's window; sets *argmax to its
 * position in the window. */
static inline ptrdiff_t find_maximum(const pool_call *p, const T *x, place at, ptrdiff_t *argmax)
{
    const adj_conv_geom *k = &p->k;
    span h = window_of(at.oh, k->sh, k->pt, k->kh, k->ih);
    span w = window_of(at.ow, k->sw, k->pl, k->kw, k->iw);
    ptrdiff_t corner = at.n * p->x.n + at.oc * p->kc * p->x.c;
    ptrdiff_t best = corner + h.from * p->x.h + w.from * p->x.w;
    ptrdiff_t top = at.oh * k->sh - k->pt, left = at.ow * k->sw - k->pl;
    A maximum = ld(x + best);

    *argmax = ((h.from - top) * k->kw + w.from - left) * p->kc;
    for (ptrdiff_t ih = h.from; ih < h.to; ih++)
        for (ptrdiff_t iw = w.from; iw < w.to; iw++)
            for (ptrdiff_t c = 0; c < p->kc; c++) {
                ptrdiff_t i = corner + ih * p->x.h + iw * p->x.w + c * p->x.c;
                A v = ld(x + i);
                if (v > maximum || (v != v && maximum == maximum)) {
                    maximum = v;
                    best = i;
                    *argmax = ((ih - top) * k->kw + iw - left) * p->kc + c;
                }
            }
    return best;
}

/* Sets y to the elements of `from` at each window's first maximum of x; if from is NULL, to the
 * positions in the windows. */
static adj_status gather(const adj_call *c, const T *x, const T *from)
{
    const pool_call p = pool_call_of(c);
    ptrdiff_t rows = p.k.n * p.k.oh;
    T *y = c->out[0];
    int32_t *where = c->out[0];

#pragma omp parallel for if (rows * p.k.ow * p.k.oc > PARALLEL_POOL)
    for (ptrdiff_t r = 0; r < rows; r++) {
        ptrdiff_t n = r / p.k.oh, oh = r % p.k.oh;
        for (ptrdiff_t ow = 0; ow < p.k.ow; ow++)
            for (ptrdiff_t oc = 0; oc < p.k.oc; oc++) {
                ptrdiff_t i = n * p.y.n + oh * p.y.h + ow * p.y.w + oc * p.y.c, argmax;
                ptrdiff_t best = find_maximum(&p, x, (place){n, oh, ow, oc}, &argmax);
                if (from != NULL)
                    y[i] = from[best];
                else
                    where[i] = (int32_t)argmax;
            }
    }
    return ADJ_OK;
}

adj_status KERNEL(max_pool)(const adj_call *c) { return gather(c, operand(c, 0), operand(c, 0)); }

adj_status KERNEL(max_pool_grad_grad)(const adj_call *c)
{
    return gather(c, operand(c, 0), operand(c, 2));
}

adj_status KERNEL(max_pool_argmax)(const adj_call *c) { return gather(c, operand(c, 0), NULL); }

/* Windows may overlap, so sums are in A until all of a channel's windows are done. */
size_t KERNEL(max_pool_grad_scratch)(const adj_node *n)
{
    return (size_t)adj_shape_elems(n->type.shape) * sizeof(A);
}

/* Returns the offset of a result's argmax; -1 if it is outside the window or image. */
static inline ptrdiff_t maximum_at(const pool_call *p, ptrdiff_t argmax, place at)
{
    const adj_conv_geom *k = &p->k;
    if (argmax < 0 || argmax >= k->kh * k->kw * p->kc)
        return -1;
    ptrdiff_t pixel = argmax / p->kc, c = at.oc * p->kc + argmax % p->kc;
    ptrdiff_t ih = at.oh * k->sh - k->pt + pixel / k->kw;
    ptrdiff_t iw = at.ow * k->sw - k->pl + pixel % k->kw;
    if (ih < 0 || ih >= k->ih || iw < 0 || iw >= k->iw)
        return -1;
    return at.n * p->x.n + ih * p->x.h + iw * p->x.w + c * p->x.c;
}

/* Adds dy at each window's first maximum of x, or, if argmax is given, at its position. */
static adj_status scatter(const adj_call *c, const T *x, const int32_t *argmax, const T *dy)
{
    const pool_call p = pool_call_of(c);
    ptrdiff_t size = adj_shape_elems(c->group->node[0]->type.shape), planes = p.k.n * p.k.oc;
    A *sum = c->scratch;
    T *dx = c->out[0];

    memset(sum, 0, (size_t)size * sizeof *sum); /* +0 in every type */
#pragma omp parallel for if (size > PARALLEL_POOL)
    for (ptrdiff_t plane = 0; plane < planes; plane++) {
        ptrdiff_t n = plane / p.k.oc, oc = plane % p.k.oc, found;
        for (ptrdiff_t oh = 0; oh < p.k.oh; oh++)
            for (ptrdiff_t ow = 0; ow < p.k.ow; ow++) {
                const place window = {n, oh, ow, oc};
                ptrdiff_t i = n * p.y.n + oh * p.y.h + ow * p.y.w + oc * p.y.c;
                ptrdiff_t at = argmax == NULL ? find_maximum(&p, x, window, &found)
                                              : maximum_at(&p, argmax[i], window);
                if (at >= 0)
                    sum[at] += ld(dy + i);
            }
    }
    for (ptrdiff_t i = 0; i < size; i++)
        st(dx + i, sum[i]);
    return ADJ_OK;
}

adj_status KERNEL(max_pool_grad)(const adj_call *c)
{
    return scatter(c, operand(c, 0), NULL, operand(c, 2));
}

adj_status KERNEL(max_pool_grad_argmax)(const adj_call *c)
{
    return scatter(c, NULL, operand(c, 0), operand(c, 1));
}
