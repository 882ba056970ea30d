/* rows.c - a row of resize.h's result: sums rows of the operand in parts that stay in the first
 * cache, then the columns of each part. Compiled once per instruction set. */
#include "backends/direct/arith.h"
#include "backends/direct/element.h"
#include "resize.h"

typedef struct { /* columns of the operand, or of the result, and channels of each */
    ptrdiff_t first, end, channel, channels;
} part;

static ptrdiff_t part_elems(const part *a) { return (a->end - a->first) * a->channels; }

/* Sets or adds to dst factor * n elements of an operand. */
static void add_elements(adj_dtype dtype, ptrdiff_t n, float factor, const char *src, int is_first,
                         float *restrict dst)
{
    float wide[RESIZE_BLOCK];
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

/* Sums rows of a part of an image. */
static void sum_rows(const resize *p, const char *image, const resize_span *rows, const part *a,
                     float *restrict sum)
{
    const float *weight = resize_weights(p, &p->h) + rows->weight;
    const ptrdiff_t row = tensor_bytes(p->dtype, p->w.src * p->channels),
                    pixel = tensor_bytes(p->dtype, p->channels);
    const char *src =
        image + rows->first * row + a->first * pixel + tensor_bytes(p->dtype, a->channel);
    if (rows->n == 0)
        memset(sum, 0, (size_t)part_elems(a) * sizeof *sum);
    for (ptrdiff_t r = 0; r < rows->n; r++, src += row)
        if (a->channels == p->channels)
            add_elements(p->dtype, part_elems(a), weight[r], src, r == 0, sum);
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

/* Gaps of up to this many unread elements are read rather than ending a part before them. */
enum { MAX_GAP = 32 };

/* Returns the columns from `first` on that fit into one part, and in *reads the columns that
 * they read; both have the channels that *reads has. */
static part next_columns(const resize *p, ptrdiff_t first, part *reads)
{
    const resize_span *span = resize_spans(p, &p->w);
    const ptrdiff_t limit = RESIZE_BLOCK / reads->channels, max_gap = MAX_GAP / reads->channels;
    part a = {first, first, reads->channel, reads->channels};
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
static void write_columns(const resize *p, const part *a, const part *reads, const float *sum,
                          char *row)
{
    const resize_span *span = resize_spans(p, &p->w);
    const float *weight = resize_weights(p, &p->w);
    float line[RESIZE_BLOCK];
    for (ptrdiff_t j = a->first; j < a->end; j++)
        sum_columns(span[j].n, weight + span[j].weight, a->channels,
                    sum + (span[j].first - reads->first) * a->channels,
                    line + (j - a->first) * a->channels);
    if (a->channels == p->channels) {
        store_reals(p->dtype, part_elems(a), row + tensor_bytes(p->dtype, a->first * a->channels),
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
    const resize_span *rows = resize_spans(p, &p->h) + job % p->h.dst;
    float sum[RESIZE_BLOCK];
    for (ptrdiff_t k = 0; k < p->channels; k += p->channel_block)
        for (ptrdiff_t j = 0; j < p->w.dst;) {
            part reads = {.channel = k, .channels = min(p->channel_block, p->channels - k)};
            const part a = next_columns(p, j, &reads);
            sum_rows(p, src, rows, &reads, sum);
            write_columns(p, &a, &reads, sum, row);
            j = a.end;
        }
}

const direct_code DIRECT(resize) = {.job = run_job};
