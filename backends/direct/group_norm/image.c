/* image.c - groups of an image of several pixels. Loops run over the channels of a pixel, a few
 * pixels at a time; a job is a chunk of whole groups of an image. Compiled as element.h says. */
#include "backends/direct/arith.h"
#include "backends/direct/element.h"
#include "group_norm.h"

enum { LINES = 4, FLUSH = 128 }; /* pixels: loaded together; summed in float */

/* A chunk of an image, and what a thread keeps for each of its channels. */
typedef struct {
    const group_norm *p;
    ptrdiff_t n, channels;            /* in the chunk */
    ptrdiff_t start, first;           /* of its first pixel in x; its first channel */
    float *sum[2], *shift, *scale[3]; /* scale: factors of the last walk */
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

/* sum0 += x - shift, sum1 += its square; or sum0 += dy, sum1 += dy * (x - shift). */
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

/* Of the group that begins at channel `at` of the chunk. */
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

/* ---- forward: y = (x - shift) * scale0 + scale1 ---- */

static void forward(const adj_call *c, ptrdiff_t job, int thread)
{
    const chunk k = chunk_of(c, job, thread);
    const float *gamma = (const float *)c->in[k.p->gamma] + k.first,
                *beta = (const float *)c->in[k.p->beta] + k.first, *shift = k.shift;
    const T *x = (const T *)c->in[k.p->x] + k.start;
    T *y = (T *)c->out[k.p->y] + k.start;
    find_stats(&k, x);
    for (ptrdiff_t at = 0; at < k.channels; at += k.p->rest) {
        const group_norm_stats t = stats_at(&k, at);
        for (ptrdiff_t i = at; i < at + k.p->rest; i++) {
            k.scale[0][i] = t.s * gamma[i];
            k.scale[1][i] = beta[i] - t.delta * (t.s * gamma[i]);
        }
    }
    const float *scale = k.scale[0], *offset = k.scale[1];
    for (ptrdiff_t pixel = 0; pixel < k.p->pixels; pixel++, x += k.p->channels, y += k.p->channels)
#pragma omp simd
        for (ptrdiff_t i = 0; i < k.channels; i++)
            y[i] = st((ld(x[i]) - shift[i]) * scale[i] + offset[i]);
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
    product = (product - (double)t->delta * sum) * s; /* of w * xhat */
    const double along = -s * s * product / m;
    for (ptrdiff_t i = at; i < at + k->p->rest; i++) {
        k->scale[0][i] = t->s * gamma[i];
        k->scale[1][i] = (float)along;
        k->scale[2][i] = (float)(-along * (double)t->delta - s * sum / m);
    }
}

static void write_dx(const chunk *k, const T *x, const T *dy, T *dx)
{
    const float *shift = k->shift, *of_dy = k->scale[0], *of_x = k->scale[1], *rest = k->scale[2];
    const ptrdiff_t stride = k->p->channels;
    for (ptrdiff_t pixel = 0; pixel < k->p->pixels;
         pixel++, x += stride, dy += stride, dx += stride)
#pragma omp simd
        for (ptrdiff_t i = 0; i < k->channels; i++)
            dx[i] = st(ld(dy[i]) * of_dy[i] + (ld(x[i]) - shift[i]) * of_x[i] + rest[i]);
}

static void write_part(const adj_call *c, const chunk *k, const group_norm_stats *t, ptrdiff_t at)
{
    float *dgamma = (float *)direct_scratch(c, k->p->part) + k->n * 2 * k->p->channels + k->first,
          *dbeta = dgamma + k->p->channels;
    for (ptrdiff_t i = at; i < at + k->p->rest; i++) {
        dgamma[i] = (float)((k->total[1][i] - (double)t->delta * k->total[0][i]) * (double)t->s);
        dbeta[i] = (float)k->total[0][i];
    }
}

static void backward(const adj_call *c, ptrdiff_t job, int thread)
{
    const chunk k = chunk_of(c, job, thread);
    const T *x = (const T *)c->in[k.p->x] + k.start, *dy = (const T *)c->in[k.p->dy] + k.start;
    find_stats(&k, x);
    for (ptrdiff_t at = 0; at < k.channels; at += k.p->rest) {
        const group_norm_stats t = stats_at(&k, at);
        k.scale[1][at] = t.delta;
        k.scale[2][at] = t.s;
    }
    add_pixels(&k, x, dy);
    for (ptrdiff_t at = 0; at < k.channels; at += k.p->rest) {
        const group_norm_stats t = {k.shift[at], k.scale[1][at], k.scale[2][at]};
        if (k.p->sums >= 0)
            write_part(c, &k, &t, at);
        if (k.p->y >= 0)
            set_scales(&k, (const float *)c->in[k.p->gamma] + k.first, &t, at);
    }
    if (k.p->y >= 0)
        write_dx(&k, x, dy, (T *)c->out[k.p->y] + k.start);
}

const group_norm_code TYPED(group_norm_image) = {{NULL, forward, NULL},
                                                 {NULL, backward, group_norm_add_parts}};
