/* max_pool.c - max_pool and its gradient in f32, by our own loops over channels-last memory.
 *
 * oneDNN's max pooling passes over NaN and gives -FLT_MAX for windows of -infinity. Ours is the
 * contract's: a NaN is the maximum, and the first maximum in row-major order takes the gradient.
 * The innermost loops run over neighbouring channels without branches, so that they vectorise; a
 * graph in NCHW is asked for its values in channels-last layout. */
#include <stdio.h>
#include <string.h>

#include "onednn.h"

enum { CHUNK = 64, PARALLEL = 1 << 14 };

typedef struct {
    ptrdiff_t from, to; /* from <= i < to */
} span;

/* The input positions inside window o. */
static span window_of(int64_t o, int64_t stride, int64_t pad, int64_t k, int64_t in)
{
    int64_t from = o * stride - pad, to = from + k;
    return (span){from > 0 ? from : 0, to < in ? to : in};
}

/* y[c] = the larger of y[c] and x[c]. */
static void take_larger(float *restrict y, const float *restrict x, ptrdiff_t channels)
{
    for (ptrdiff_t c = 0; c < channels; c++)
        y[c] = ((x[c] > y[c]) | (x[c] != x[c])) ? x[c] : y[c];
}

static void pool_row(const adj_conv_geom *g, const float *x, float *y, int64_t n, int64_t oh)
{
    span h = window_of(oh, g->sh, g->pt, g->kh, g->ih);
    for (int64_t ow = 0; ow < g->ow; ow++) {
        span w = window_of(ow, g->sw, g->pl, g->kw, g->iw);
        float *result = y + ((n * g->oh + oh) * g->ow + ow) * g->oc;
        memcpy(result, x + ((n * g->ih + h.from) * g->iw + w.from) * g->ic,
               (size_t)g->ic * sizeof *y);
        for (ptrdiff_t ih = h.from; ih < h.to; ih++)
            for (ptrdiff_t iw = w.from; iw < w.to; iw++)
                take_larger(result, x + ((n * g->ih + ih) * g->iw + iw) * g->ic, g->ic);
    }
}

static void pool_forward(const adj_conv_geom *g, const float *x, float *y)
{
#pragma omp parallel for if (g->n * g->ih * g->iw * g->ic > PARALLEL)
    for (int64_t row = 0; row < g->n * g->oh; row++)
        pool_row(g, x, y, row / g->oh, row % g->oh);
}

/* Where the first maximum of each channel is: at[c] becomes `pixel` where x[c] is larger. */
static void note_larger(float *restrict maximum, int32_t *restrict at, const float *restrict x,
                        int32_t pixel, ptrdiff_t channels)
{
    for (ptrdiff_t c = 0; c < channels; c++) {
        int is_larger = (x[c] > maximum[c]) | ((x[c] != x[c]) & (maximum[c] == maximum[c]));
        maximum[c] = is_larger ? x[c] : maximum[c];
        at[c] = is_larger ? pixel : at[c];
    }
}

static void add_where(float *restrict dx, const float *restrict dy, const int32_t *restrict at,
                      int32_t pixel, ptrdiff_t channels)
{
    for (ptrdiff_t c = 0; c < channels; c++) {
        float d = dy[c]; /* read in any case, or it would not vectorise */
        dx[c] += at[c] == pixel ? d : 0;
    }
}

/* One window of at most CHUNK channels; x, dy and dx point to the image's and the chunk's first. */
static void window_gradient(const adj_conv_geom *g, span h, span w, const float *x, const float *dy,
                            float *dx, ptrdiff_t channels)
{
    float maximum[CHUNK];
    int32_t at[CHUNK], first = (int32_t)(h.from * g->iw + w.from);

    memcpy(maximum, x + first * g->ic, (size_t)channels * sizeof *maximum);
    for (ptrdiff_t c = 0; c < channels; c++)
        at[c] = first;
    for (ptrdiff_t ih = h.from; ih < h.to; ih++)
        for (ptrdiff_t iw = w.from; iw < w.to; iw++)
            note_larger(maximum, at, x + (ih * g->iw + iw) * g->ic, (int32_t)(ih * g->iw + iw),
                        channels);
    for (ptrdiff_t ih = h.from; ih < h.to; ih++)
        for (ptrdiff_t iw = w.from; iw < w.to; iw++)
            add_where(dx + (ih * g->iw + iw) * g->ic, dy, at, (int32_t)(ih * g->iw + iw), channels);
}

/* Windows may overlap, but not those of different images or channels: they are the jobs. */
static void pool_backward(const adj_conv_geom *g, const float *x, const float *dy, float *dx)
{
    int64_t chunks = (g->ic + CHUNK - 1) / CHUNK;
#pragma omp parallel for if (g->n * g->ih * g->iw * g->ic > PARALLEL)
    for (int64_t job = 0; job < g->n * chunks; job++) {
        int64_t n = job / chunks, c = job % chunks * CHUNK;
        ptrdiff_t channels = g->ic - c < CHUNK ? g->ic - c : CHUNK, image = n * g->ih * g->iw;
        for (int64_t pixel = 0; pixel < g->ih * g->iw; pixel++)
            memset(dx + (image + pixel) * g->ic + c, 0, (size_t)channels * sizeof *dx);
        for (int64_t oh = 0; oh < g->oh; oh++)
            for (int64_t ow = 0; ow < g->ow; ow++)
                window_gradient(g, window_of(oh, g->sh, g->pt, g->kh, g->ih),
                                window_of(ow, g->sw, g->pl, g->kw, g->iw), x + image * g->ic + c,
                                dy + ((n * g->oh + oh) * g->ow + ow) * g->oc + c,
                                dx + image * g->ic + c, channels);
    }
}

/* The channels-last layout of value v, [n,h,w,c] or [n,c,h,w] as the pool's format says. */
static adj_status channels_last(onednn *o, const adj_node *v, int64_t format,
                                const adj_layout **out)
{
    const int64_t *d = v->type.shape.dim;
    md last = NULL, plain = NULL;
    adj_status status = ADJ_OK;
    *out = NULL;
    if (format == ADJ_NHWC)
        return ADJ_OK;
    const int64_t nhwc[] = {d[1] * d[2] * d[3], 1, d[3] * d[1], d[1]};
    const int64_t nchw[] = {d[1] * d[2] * d[3], d[2] * d[3], d[3], 1};
    if (md_new(&o->allocator, &last, 4, d, dnnl_f32, nhwc) != dnnl_success ||
        md_new(&o->allocator, &plain, 4, d, dnnl_f32, nchw) != dnnl_success)
        status = ADJ_ENOMEM;
    else
        status = layout_of(o, last, plain, "nchw", out);
    md_free(&o->allocator, plain);
    md_free(&o->allocator, last);
    return status;
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    const adj_node *n = g->node[0];
    int backward = n->op == &adj_op_max_pool_grad;
    if ((n->op != &adj_op_max_pool && !backward) || g->n_node > 1 || candidate > 0)
        return ADJ_ENOKERNEL;
    adj_status status = onednn_check(n, p->why);
    if (status != ADJ_OK)
        return status;
    const adj_pool_attrs *a = n->attrs;
    if (n->type.dtype != ADJ_F32 || a->kc != 1) {
        snprintf(p->why, ADJ_WHY, "%s: only in f32 and without a window in depth", n->op->name);
        return ADJ_ENOKERNEL;
    }
    for (int i = 0; i < n->n_in && status == ADJ_OK; i++)
        status =
            channels_last(backend, n->in[i], a->geom.format, &p->in[onednn_position(g, n->in[i])]);
    if (status == ADJ_OK)
        status = channels_last(backend, n, a->geom.format, &p->out[0]);
    p->rank = p->out[0] == NULL; /* direct does it better in plain memory */
    snprintf(p->impl, sizeof p->impl, "own:channels_last");
    return status;
}

static adj_status run(const adj_call *c)
{
    const adj_node *n = c->group->node[0];
    const adj_pool_attrs *a = n->attrs;
    const float *x = c->in[onednn_position(c->group, n->in[0])];
    if (n->op == &adj_op_max_pool)
        pool_forward(&a->geom, x, c->out[0]);
    else
        pool_backward(&a->geom, x, c->in[onednn_position(c->group, n->in[2])], c->out[0]);
    return ADJ_OK;
}

const adj_kernel onednn_max_pool = {.name = "max_pool", .prepare = prepare, .run = run};
