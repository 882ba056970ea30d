/* image.c - groups of an image of several pixels. Loops run over the channels of a pixel, a few
 * pixels at a time; a job is a chunk of whole groups of an image. Compiled per type as in
 * element.h. */
#include "backends/direct/arith.h"
#include "backends/direct/element.h"
#include "group_norm.h"
#include "wide.h"

enum { LINES = 4, FLUSH = 128 }; /* pixels loaded together; pixels summed in float */

/* A chunk of an image, and a thread's per-channel values for it. */
typedef struct {
    const group_norm *p;
    ptrdiff_t n, channels;            /* pixels and channels of the chunk */
    ptrdiff_t start, first;           /* offset of its first pixel in x; its first channel */
    float *sum[2], *shift, *scale[3]; /* scale: factors of the last pass */
    double *total[2];
} chunk;

static chunk chunk_of(const adj_call *c, ptrdiff_t job, int thread)
{
    const group_norm *p = c->state;
    const size_t own = p->thread + p->per_thread * (size_t)thread;
    chunk k = {.p = p, .n = job / p->chunks, .first = job % p->chunks * p->chunk * p->rest};
    k.channels = min(p->chunk * p->rest, p->channels - k.first);
    k.start = k.n * p->pixels * p->channels + k.first;
    const ptrdiff_t size = p->chunk * p->rest;
    for (int i = 0; i < 2; i++) {
        k.sum[i] = (float *)direct_scratch(c, own + p->accumulated) + i * size;
        k.total[i] = (double *)direct_scratch(c, own + p->total) + i * size;
    }
    k.shift = direct_scratch(c, own + p->column);
    for (int i = 0; i < 3; i++)
        k.scale[i] = k.shift + (1 + i) * size;
    return k;
}

/* ---- sums over the pixels, by channel ---- */

/* Adds x - shift to sum0 and its square to sum1; or dy to sum0 and dy * (x - shift) to sum1. */
static inline void add_lines(const chunk *k, const T *x, const T *dy, int lines)
{
    const ptrdiff_t stride = k->p->channels;
    const float *shift = k->shift;
    float *restrict sum = k->sum[0], *restrict product = k->sum[1];
#pragma omp simd
    for (ptrdiff_t i = 0; i < k->channels; i++) {
        float a = sum[i], b = product[i];
        for (int line = 0; line < lines; line++) {
            float d = ld(x[line * stride + i]) - shift[i];
            float e = dy != NULL ? ld(dy[line * stride + i]) : d;
            a += e;
            b += e * d;
        }
        sum[i] = a;
        product[i] = b;
    }
}

static void add_pixels(const chunk *k, const T *x, const T *dy)
{
    const ptrdiff_t stride = k->p->channels;
    for (int i = 0; i < 2; i++) {
        memset(k->sum[i], 0, (size_t)k->channels * sizeof *k->sum[i]);
        memset(k->total[i], 0, (size_t)k->channels * sizeof *k->total[i]);
    }
    for (ptrdiff_t first = 0; first < k->p->pixels; first += FLUSH) {
        const ptrdiff_t end = min(first + FLUSH, k->p->pixels);
        ptrdiff_t i = first;
        for (; i + LINES <= end; i += LINES)
            if (dy != NULL)
                add_lines(k, x + i * stride, dy + i * stride, LINES);
            else
                add_lines(k, x + i * stride, NULL, LINES);
        for (; i < end; i++)
            add_lines(k, x + i * stride, dy != NULL ? dy + i * stride : NULL, 1);
        flush_sums(k->channels, k->sum[0], k->total[0]);
        flush_sums(k->channels, k->sum[1], k->total[1]);
    }
}

static double sum_of(const double *v, ptrdiff_t n)
{
    double sum = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        sum += v[i];
    return sum;
}

/* Returns the statistics of the group that begins at channel `at` of the chunk. */
static group_norm_stats stats_at(const chunk *k, ptrdiff_t at)
{
    const ptrdiff_t rest = k->p->rest;
    return group_norm_stats_of(k->shift[at], sum_of(k->total[0] + at, rest),
                               sum_of(k->total[1] + at, rest), (double)(rest * k->p->pixels),
                               k->p->epsilon);
}

/* Sets the shift of each group; the sums are then of x - shift and its square. */
static void find_stats(const chunk *k, const T *x)
{
    const ptrdiff_t rest = k->p->rest;
    memset(k->shift, 0, (size_t)k->channels * sizeof *k->shift);
    add_pixels(k, x, NULL);
    for (ptrdiff_t at = 0; at < k->channels; at += rest) {
        double mean = sum_of(k->total[0] + at, rest) / (double)(rest * k->p->pixels);
        for (ptrdiff_t i = 0; i < rest; i++)
            k->shift[at + i] = (float)mean;
    }
    add_pixels(k, x, NULL);
}

/* ---- ranges of channels: the whole chunk, unless one of its groups is wide ---- */

/* Operands and result, at the chunk's first pixel and channel. */
typedef struct {
    const T *x, *dy;
    const float *gamma, *beta;
    T *to;
} operands;

/* Processes channels begin .. end, which are those of groups that are not wide or of one wide
 * group. */
typedef void over_channels(const chunk *k, const operands *o, ptrdiff_t begin, ptrdiff_t end);

/* True if wide.h computes the group: its shift is NaN. */
static int is_wide(const chunk *k, ptrdiff_t at) { return isnan(k->shift[at]); }

/* Calls plain or wide for the channels of each group. Groups are independent, so the result may
 * share memory with an operand. */
static void over_groups(const chunk *k, const operands *o, over_channels *plain,
                        over_channels *wide)
{
    int n_wide = 0;
    for (ptrdiff_t at = 0; at < k->channels; at += k->p->rest)
        n_wide += is_wide(k, at);
    if (n_wide == 0)
        plain(k, o, 0, k->channels);
    for (ptrdiff_t at = 0; at < k->channels && n_wide > 0; at += k->p->rest)
        (is_wide(k, at) ? wide : plain)(k, o, at, at + k->p->rest);
}

/* ---- forward: y = (x - shift) * scale0 + scale1 ---- */

static void write_y(const chunk *k, const operands *o, ptrdiff_t begin, ptrdiff_t end)
{
    const float *shift = k->shift, *scale = k->scale[0], *offset = k->scale[1];
    const T *x = o->x;
    T *y = o->to;
    for (ptrdiff_t pixel = 0; pixel < k->p->pixels;
         pixel++, x += k->p->channels, y += k->p->channels)
#pragma omp simd
        for (ptrdiff_t i = begin; i < end; i++)
            y[i] = st((ld(x[i]) - shift[i]) * scale[i] + offset[i]);
}

static void write_wide_y(const chunk *k, const operands *o, ptrdiff_t begin, ptrdiff_t end)
{
    (void)end;
    wide_forward(k->p, o->x + begin, o->gamma + begin, o->beta + begin, o->to + begin);
}

static void forward(const adj_call *c, ptrdiff_t job, int thread)
{
    const chunk k = chunk_of(c, job, thread);
    const operands o = {.x = (const T *)c->in[k.p->x] + k.start,
                        .gamma = (const float *)c->in[k.p->gamma] + k.first,
                        .beta = (const float *)c->in[k.p->beta] + k.first,
                        .to = (T *)c->out[k.p->y] + k.start};
    find_stats(&k, o.x);
    for (ptrdiff_t at = 0; at < k.channels; at += k.p->rest) {
        const group_norm_stats t = stats_at(&k, at);
        for (ptrdiff_t i = at; i < at + k.p->rest; i++) {
            k.scale[0][i] = t.s * o.gamma[i];
            k.scale[1][i] = o.beta[i] - t.delta * (t.s * o.gamma[i]);
        }
        if (!(t.s > 0))
            k.shift[at] = NAN;
    }
    over_groups(&k, &o, write_y, write_wide_y);
}

/* ---- gradients ---- */

/* dx = s (w - mean(w) - xhat mean(w xhat)) = dy * scale0 + (x - shift) * scale1 + scale2, from the
 * sums of dy and dy * (x - shift). */
static void set_scales(const chunk *k, const float *gamma, const group_norm_stats *t, ptrdiff_t at)
{
    const double m = (double)(k->p->rest * k->p->pixels), s = (double)t->s;
    double sum = 0, product = 0;
    for (ptrdiff_t i = at; i < at + k->p->rest; i++) {
        sum += (double)gamma[i] * k->total[0][i];
        product += (double)gamma[i] * k->total[1][i];
    }
    product = (product - (double)t->delta * sum) * s; /* sum of w * xhat */
    const double along = -s * s * product / m;
    for (ptrdiff_t i = at; i < at + k->p->rest; i++) {
        k->scale[0][i] = t->s * gamma[i];
        k->scale[1][i] = (float)along;
        k->scale[2][i] = (float)(-along * (double)t->delta - s * sum / m);
    }
}

static void write_dx(const chunk *k, const operands *o, ptrdiff_t begin, ptrdiff_t end)
{
    const float *shift = k->shift, *of_dy = k->scale[0], *of_x = k->scale[1], *rest = k->scale[2];
    const ptrdiff_t stride = k->p->channels;
    const T *x = o->x, *dy = o->dy;
    T *dx = o->to;
    for (ptrdiff_t pixel = 0; pixel < k->p->pixels;
         pixel++, x += stride, dy += stride, dx += stride)
#pragma omp simd
        for (ptrdiff_t i = begin; i < end; i++)
            dx[i] = st(ld(dy[i]) * of_dy[i] + (ld(x[i]) - shift[i]) * of_x[i] + rest[i]);
}

static void write_wide_dx(const chunk *k, const operands *o, ptrdiff_t begin, ptrdiff_t end)
{
    (void)end;
    wide_dx(k->p, o->x + begin, o->gamma + begin, o->dy + begin, o->to + begin);
}

/* Writes the group's sums for gamma and beta, from those of dy and dy * (x - shift). */
static void write_partial(const adj_call *c, const chunk *k, const operands *o,
                          const group_norm_stats *t, ptrdiff_t at)
{
    double *of_dy = k->total[0] + at, *of_x = k->total[1] + at;
    if (is_wide(k, at)) {
        memset(of_dy, 0, (size_t)k->p->rest * sizeof *of_dy);
        memset(of_x, 0, (size_t)k->p->rest * sizeof *of_x);
        wide_sums(k->p, o->x + at, o->dy + at, of_x, of_dy);
    } else {
        for (ptrdiff_t i = 0; i < k->p->rest; i++)
            of_x[i] = (of_x[i] - (double)t->delta * of_dy[i]) * (double)t->s;
    }
    float *dgamma =
        (float *)direct_scratch(c, k->p->partial) + k->n * 2 * k->p->channels + k->first + at;
    for (ptrdiff_t i = 0; i < k->p->rest; i++) {
        dgamma[i] = (float)of_x[i];
        dgamma[k->p->channels + i] = (float)of_dy[i];
    }
}

static void backward(const adj_call *c, ptrdiff_t job, int thread)
{
    const chunk k = chunk_of(c, job, thread);
    const group_norm *p = k.p;
    operands o = {.x = (const T *)c->in[p->x] + k.start, .dy = (const T *)c->in[p->dy] + k.start};
    find_stats(&k, o.x);
    for (ptrdiff_t at = 0; at < k.channels; at += p->rest) {
        const group_norm_stats t = stats_at(&k, at);
        k.scale[1][at] = t.delta;
        k.scale[2][at] = t.s;
    }
    add_pixels(&k, o.x, o.dy);
    if (p->y >= 0) {
        o.gamma = (const float *)c->in[p->gamma] + k.first;
        o.to = (T *)c->out[p->y] + k.start;
    }
    for (ptrdiff_t at = 0; at < k.channels; at += p->rest) {
        const group_norm_stats t = {k.shift[at], k.scale[1][at], k.scale[2][at]};
        if (!(t.s > 0) || !isfinite(sum_of(k.total[0] + at, p->rest)) ||
            !isfinite(sum_of(k.total[1] + at, p->rest)))
            k.shift[at] = NAN;
        if (p->y >= 0)
            set_scales(&k, o.gamma, &t, at);
        if (p->sums >= 0)
            write_partial(c, &k, &o, &t, at);
    }
    if (p->y >= 0)
        over_groups(&k, &o, write_dx, write_wide_dx);
}

const group_norm_code TYPED(group_norm_image) = {{NULL, forward, NULL},
                                                 {NULL, backward, group_norm_add_partials}};
