/* resize.c - the kernel of resize.h: the nodes it accepts, and its lists of elements and
 * weights. */
#include "resize.h"

#include "backends/direct/arith.h"

static const int64_t max_size = 1 << 16; /* rows and columns, which are listed */
static const ptrdiff_t max_sum = 256;    /* terms along an axis in float: naive sums in double */
static const int64_t parallel_above = 1 << 13; /* elements read or written */

/* ---- the lists ---- */

typedef struct { /* element `at` with weight 1 - next, and the one after it with weight next */
    int64_t at;
    double next;
} sample;

/* Returns the elements that output o of the forward op reads; include/adjoint_ops.h has the
 * definition. */
static sample sample_of(const adj_resize_attrs *a, int64_t in, int64_t out, int64_t o)
{
    int64_t position = 2 * o * in, unit = 2 * out;
    if (a->coordinates == ADJ_HALF_PIXEL)
        position += in - out;
    else if (a->coordinates == ADJ_ALIGN_CORNERS) {
        position = 2 * o * (in - 1);
        unit = out > 1 ? 2 * (out - 1) : 2;
    }
    if (a->mode == ADJ_NEAREST) {
        position += a->coordinates == ADJ_ASYMMETRIC ? 0 : unit / 2;
        return (sample){position / unit, 0};
    }
    position = position > 0 ? position : 0;
    const int64_t at = position / unit;
    return (sample){at, at < in - 1 ? (double)(position % unit) / (double)unit : 0};
}

static void list_inputs(const adj_resize_attrs *a, int64_t in, int64_t out, resize_span *span,
                        float *weight)
{
    ptrdiff_t n = 0;
    for (int64_t o = 0; o < out; o++) {
        const sample s = sample_of(a, in, out, o);
        span[o] = (resize_span){(int32_t)s.at, s.next > 0 ? 2 : 1, n};
        weight[n] = (float)(1 - s.next);
        if (s.next > 0)
            weight[n + 1] = (float)s.next;
        n += span[o].n;
    }
}

/* Lists the outputs that read each input: they are contiguous, as positions grow with o. */
static void list_outputs(const adj_resize_attrs *a, int64_t in, int64_t out, resize_span *span,
                         float *weight)
{
    ptrdiff_t n = 0;
    for (int64_t i = 0; i < in; i++)
        span[i] = (resize_span){0};
    for (int64_t o = 0; o < out; o++) {
        const sample s = sample_of(a, in, out, o);
        for (int64_t i = s.at; i <= s.at + (s.next > 0); i++)
            if (span[i].n++ == 0)
                span[i].first = (int32_t)o;
    }
    for (int64_t i = 0; i < in; n += span[i++].n) {
        span[i].weight = n;
        if (span[i].n == 0 && i > 0)
            span[i].first = span[i - 1].first + span[i - 1].n;
    }
    for (int64_t o = 0; o < out; o++) {
        const sample s = sample_of(a, in, out, o);
        for (int64_t i = s.at; i <= s.at + (s.next > 0); i++)
            weight[span[i].weight + o - span[i].first] = (float)(i > s.at ? s.next : 1 - s.next);
    }
}

/* ---- the kernel ---- */

/* Lays out an axis's lists from *size on; adds their bytes to *size. */
static resize_axis lay_out(int is_grad, int64_t in, int64_t out, size_t *size)
{
    resize_axis axis = {.src = is_grad ? out : in, .dst = is_grad ? in : out};
    axis.spans = reserve(size, axis.dst, sizeof(resize_span));
    axis.weights = reserve(size, 2 * out, sizeof(float)); /* an output reads at most two */
    return axis;
}

static void list_axis(resize *p, const adj_resize_attrs *a, int is_grad, const resize_axis *axis)
{
    resize_span *span = (resize_span *)resize_spans(p, axis);
    float *weight = (float *)resize_weights(p, axis);
    if (is_grad)
        list_outputs(a, axis->dst, axis->src, span, weight);
    else
        list_inputs(a, axis->src, axis->dst, span, weight);
}

/* Returns the longest span. */
static ptrdiff_t max_span(const resize *p, const resize_axis *axis)
{
    const resize_span *span = resize_spans(p, axis);
    ptrdiff_t longest = 1;
    for (ptrdiff_t i = 0; i < axis->dst; i++)
        longest = max(longest, span[i].n);
    return longest;
}

static adj_status plan(const direct *d, const adj_group *g, resize *p, size_t size, adj_prep *prep)
{
    const adj_node *n = g->node[0];
    const adj_resize_attrs *a = n->attrs;
    const int is_grad = n->op == &adj_op_resize_grad;
    list_axis(p, a, is_grad, &p->h);
    list_axis(p, a, is_grad, &p->w);
    const ptrdiff_t columns = max_span(p, &p->w);
    if (max(columns, max_span(p, &p->h)) > max_sum)
        return direct_refuse(prep, "%s: direct sums at most %d rows and columns", n->op->name,
                             (int)max_sum);
    p->channel_block = min(p->channels, RESIZE_BLOCK / columns);
    return direct_accept(d, g, prep, "resize", p, size);
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *prep)
{
    const direct *d = backend;
    const adj_node *n = g->node[0];
    if (candidate > 0 || g->n_node > 1 || (n->op != &adj_op_resize && n->op != &adj_op_resize_grad))
        return ADJ_ENOKERNEL;
    const adj_resize_attrs *a = n->attrs;
    const int64_t *dim = n->type.shape.dim, *src = n->in[0]->type.shape.dim;
    if (n->type.dtype == ADJ_F64 || a->format != ADJ_NHWC)
        return direct_refuse(prep, "%s: direct has no kernel for f64 or NCHW", n->op->name);
    if (max(a->ih, a->oh) > max_size || max(a->iw, a->ow) > max_size)
        return direct_refuse(prep, "%s: direct takes at most %d rows and columns", n->op->name,
                             (int)max_size);
    const int is_grad = n->op == &adj_op_resize_grad;
    const int64_t rows = dim[0] * dim[1],
                  elems = max(dim[0] * src[1] * src[2], rows * dim[2]) * dim[3];
    size_t size = sizeof(resize);
    resize axes = {.work = {.code = d->isa->resize,
                            .jobs = (ptrdiff_t)rows,
                            .threads = elems > parallel_above ? d->threads : 1},
                   .dtype = n->type.dtype,
                   .channels = (ptrdiff_t)dim[3]};
    axes.h = lay_out(is_grad, a->ih, a->oh, &size);
    axes.w = lay_out(is_grad, a->iw, a->ow, &size);
    resize *p = adj_alloc(&d->allocator, size);
    if (p == NULL)
        return ADJ_ENOMEM;
    *p = axes;
    const adj_status status = plan(d, g, p, size, prep);
    adj_release(&d->allocator, p);
    return status;
}

const adj_kernel direct_resize = {
    .name = "resize", .prepare = prepare, .run = direct_run, .drop = direct_drop};
