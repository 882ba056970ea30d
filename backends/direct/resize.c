/* resize.c - resize and its gradient: each element of the result is a weighted sum of elements of
 * the operand (src), along the rows and along the columns. Planning the kernel lists the elements
 * and their weights; the gradient's lists are the transposed ones. A job is a row of the result: it
 * sums rows of the operand in chunks that stay in the first cache, then the columns of each chunk.
 * The jobs are compiled once per instruction set. */
#include "arith.h"
#include "direct.h"
#include "element.h"

enum { BLOCK = 2048 }; /* elements of a block of a row: several fit into the first cache */

typedef struct { /* the elements that a result's element reads along an axis */
    int32_t first, n;
    ptrdiff_t weight; /* index of the first weight among the axis's */
} resize_span;

typedef struct {
    ptrdiff_t src, dst;    /* sizes of the operand and of the result */
    size_t spans, weights; /* offsets of the lists in the state, in bytes */
} resize_axis;

typedef struct {
    direct_work work; /* a job is a row of the result */
    adj_dtype dtype;
    ptrdiff_t channels, channel_block; /* channels; as many as fit a block for one column's reads */
    resize_axis h, w;                  /* followed by the lists */
} resize;

static const resize_span *spans_of(const resize *p, const resize_axis *a)
{
    return (const resize_span *)(const void *)((const char *)p + a->spans);
}

static const float *weights_of(const resize *p, const resize_axis *a)
{
    return (const float *)(const void *)((const char *)p + a->weights);
}

/* ---- a row of the result ---- */

typedef struct { /* columns of the operand, or of the result, and channels of each */
    ptrdiff_t first, end, channel, channels;
} chunk;

static ptrdiff_t chunk_elems(const chunk *a) { return (a->end - a->first) * a->channels; }

/* Sets or adds to dst factor * n elements of an operand. */
static void add_elements(adj_dtype dtype, ptrdiff_t n, float factor, const char *src, int is_first,
                         float *restrict dst)
{
    float wide[BLOCK];
    const float *x = (const float *)(const void *)src;
    if (dtype != ADJ_F32) {
        load_reals(dtype, n, wide, src);
        x = wide;
    }
    if (is_first) {
#pragma omp simd
        for (ptrdiff_t i = 0; i < n; i++)
            dst[i] = factor * x[i];
    } else {
#pragma omp simd
        for (ptrdiff_t i = 0; i < n; i++)
            dst[i] += factor * x[i];
    }
}

/* Sums rows of a chunk of an image. */
static void sum_rows(const resize *p, const char *image, const resize_span *rows, const chunk *a,
                     float *restrict sum)
{
    const float *weight = weights_of(p, &p->h) + rows->weight;
    const ptrdiff_t row = tensor_bytes(p->dtype, p->w.src * p->channels),
                    pixel = tensor_bytes(p->dtype, p->channels);
    const char *src =
        image + rows->first * row + a->first * pixel + tensor_bytes(p->dtype, a->channel);
    if (rows->n == 0)
        memset(sum, 0, (size_t)chunk_elems(a) * sizeof *sum);
    for (ptrdiff_t r = 0; r < rows->n; r++, src += row)
        if (a->channels == p->channels)
            add_elements(p->dtype, chunk_elems(a), weight[r], src, r == 0, sum);
        else
            for (ptrdiff_t i = 0; i < a->end - a->first; i++)
                add_elements(p->dtype, a->channels, weight[r], src + i * pixel, r == 0,
                             sum + i * a->channels);
}

/* Sets dst to the weighted sum of n pixels of `channels` channels, from x on. */
static void sum_columns(ptrdiff_t n, const float *restrict weight, ptrdiff_t channels,
                        const float *restrict x, float *restrict dst)
{
    if (n >= 2) {
#pragma omp simd
        for (ptrdiff_t c = 0; c < channels; c++)
            dst[c] = weight[0] * x[c] + weight[1] * x[channels + c];
    } else if (n == 1) {
#pragma omp simd
        for (ptrdiff_t c = 0; c < channels; c++)
            dst[c] = weight[0] * x[c];
    } else
        memset(dst, 0, (size_t)channels * sizeof *dst);
    for (ptrdiff_t k = 2; k < n; k++)
#pragma omp simd
        for (ptrdiff_t c = 0; c < channels; c++)
            dst[c] += weight[k] * x[k * channels + c];
}

/* Gaps of up to this many unread elements are read rather than ending a chunk before them. */
enum { MAX_GAP = 32 };

/* Returns the columns from `first` on that fit into one chunk, and in *reads the columns that
 * they read; both have the channels that *reads has. */
static chunk next_columns(const resize *p, ptrdiff_t first, chunk *reads)
{
    const resize_span *span = spans_of(p, &p->w);
    const ptrdiff_t limit = BLOCK / reads->channels, max_gap = MAX_GAP / reads->channels;
    chunk a = {first, first, reads->channel, reads->channels};
    reads->first = span[first].first;
    reads->end = reads->first + span[first].n;
    for (; a.end < p->w.dst && a.end - first < limit; a.end++) {
        const resize_span *s = &span[a.end];
        if (s->first + s->n - reads->first > limit || s->first - reads->end > max_gap)
            break;
        reads->end = max(reads->end, s->first + s->n);
    }
    return a;
}

/* Writes these columns of the result's row. */
static void write_columns(const resize *p, const chunk *a, const chunk *reads, const float *sum,
                          char *row)
{
    const resize_span *span = spans_of(p, &p->w);
    const float *weight = weights_of(p, &p->w);
    float line[BLOCK];
    for (ptrdiff_t j = a->first; j < a->end; j++)
        sum_columns(span[j].n, weight + span[j].weight, a->channels,
                    sum + (span[j].first - reads->first) * a->channels,
                    line + (j - a->first) * a->channels);
    if (a->channels == p->channels) {
        store_reals(p->dtype, chunk_elems(a), row + tensor_bytes(p->dtype, a->first * a->channels),
                    line);
        return;
    }
    for (ptrdiff_t j = a->first; j < a->end; j++)
        store_reals(p->dtype, a->channels,
                    row + tensor_bytes(p->dtype, j * p->channels + a->channel),
                    line + (j - a->first) * a->channels);
}

static void run_job(const adj_call *c, ptrdiff_t job, int thread)
{
    (void)thread;
    const resize *p = c->state;
    const ptrdiff_t n = job / p->h.dst, image = p->h.src * p->w.src * p->channels;
    const char *src = (const char *)c->in[0] + tensor_bytes(p->dtype, n * image);
    char *row = (char *)c->out[0] + tensor_bytes(p->dtype, job * p->w.dst * p->channels);
    const resize_span *rows = spans_of(p, &p->h) + job % p->h.dst;
    float sum[BLOCK];
    for (ptrdiff_t k = 0; k < p->channels; k += p->channel_block)
        for (ptrdiff_t j = 0; j < p->w.dst;) {
            chunk reads = {.channel = k, .channels = min(p->channel_block, p->channels - k)};
            const chunk a = next_columns(p, j, &reads);
            sum_rows(p, src, rows, &reads, sum);
            write_columns(p, &a, &reads, sum, row);
            j = a.end;
        }
}

const direct_code DIRECT(resize) = {.job = run_job};

#ifdef ISA_base

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
    resize_span *span = (resize_span *)spans_of(p, axis);
    float *weight = (float *)weights_of(p, axis);
    if (is_grad)
        list_outputs(a, axis->dst, axis->src, span, weight);
    else
        list_inputs(a, axis->src, axis->dst, span, weight);
}

/* Returns the longest span. */
static ptrdiff_t max_span(const resize *p, const resize_axis *axis)
{
    const resize_span *span = spans_of(p, axis);
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
    p->channel_block = min(p->channels, BLOCK / columns);
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

#endif
