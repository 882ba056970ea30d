/* rows.c - contiguous groups: images of one pixel, and layer norm's rows. A job is a segment of
 * the rows. Compiled per type as in element.h. */
#include "backends/direct/arith.h"
#include "backends/direct/element.h"
#include "group_norm.h"
#include "wide.h"

enum { PIECE = 1024, FLUSH = 64 }; /* elements, and rows, summed in float */

typedef struct {
    double sum, product;
} sums;

/* Returns the sums of x - shift and of its square; or, with dy, of w = gamma * dy and of w *
 * xhat. */
ALWAYS sums sums_of(const int has_dy, ptrdiff_t n, const T *x, group_norm_stats t,
                    const float *gamma, const T *dy)
{
    sums all = {0, 0};
    for (ptrdiff_t first = 0; first < n; first += PIECE) {
        const ptrdiff_t end = min(first + PIECE, n);
        float sum = 0, product = 0;
#pragma omp simd reduction(+ : sum, product)
        for (ptrdiff_t i = first; i < end; i++) {
            float d = ld(x[i]) - t.shift, w = has_dy ? gamma[i] * ld(dy[i]) : d;
            sum += w;
            product += w * (has_dy ? (d - t.delta) * t.s : d);
        }
        all.sum += (double)sum;
        all.product += (double)product;
    }
    return all;
}

static group_norm_stats stats_of(const T *x, ptrdiff_t n, double epsilon)
{
    group_norm_stats t = {0, 0, 0};
    t.shift = (float)(sums_of(0, n, x, t, NULL, NULL).sum / (double)n);
    const sums of_x = sums_of(0, n, x, t, NULL, NULL);
    return group_norm_stats_of(t.shift, of_x.sum, of_x.product, (double)n, epsilon);
}

static void normalize(ptrdiff_t n, const T *x, group_norm_stats t, const float *gamma,
                      const float *beta, T *y)
{
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++)
        y[i] = st(((ld(x[i]) - t.shift) - t.delta) * t.s * gamma[i] + beta[i]);
}

static void forward(const adj_call *c, ptrdiff_t job, int thread)
{
    const group_norm *p = c->state;
    const float *gamma = c->in[p->gamma], *beta = c->in[p->beta];
    (void)thread;
    for (ptrdiff_t n = p->n * job / p->work.jobs; n < p->n * (job + 1) / p->work.jobs; n++)
        for (ptrdiff_t g = 0; g < p->groups; g++) {
            const ptrdiff_t first = g * p->rest, start = n * p->channels + first;
            const T *x = (const T *)c->in[p->x] + start;
            const group_norm_stats t = stats_of(x, p->rest, p->epsilon);
            T *y = (T *)c->out[p->y] + start;
            if (t.s > 0)
                normalize(p->rest, x, t, gamma + first, beta + first, y);
            else
                wide_forward(p, x, gamma + first, beta + first, y);
        }
}

/* ---- gradients ---- */

static void write_dx(const group_norm *p, const T *x, group_norm_stats t, const float *gamma,
                     const T *dy, T *dx)
{
    const ptrdiff_t n = p->rest;
    const sums of_w = sums_of(1, n, x, t, gamma, dy);
    if (!(t.s > 0) || !isfinite(of_w.sum) || !isfinite(of_w.product)) {
        wide_dx(p, x, gamma, dy, dx);
        return;
    }
    const float mean = (float)(of_w.sum / (double)n), along = (float)(of_w.product / (double)n);
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++) {
        float xhat = ((ld(x[i]) - t.shift) - t.delta) * t.s;
        dx[i] = st(t.s * (gamma[i] * ld(dy[i]) - mean - xhat * along));
    }
}

static void add_to_sums(ptrdiff_t n, const T *x, group_norm_stats t, const T *dy,
                        float *restrict dgamma, float *restrict dbeta)
{
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++) {
        float d = ld(dy[i]);
        dgamma[i] += d * (((ld(x[i]) - t.shift) - t.delta) * t.s);
        dbeta[i] += d;
    }
}

static void backward(const adj_call *c, ptrdiff_t job, int thread)
{
    const group_norm *p = c->state;
    const ptrdiff_t begin = p->n * job / p->work.jobs, end = p->n * (job + 1) / p->work.jobs;
    const ptrdiff_t two_rows = p->sums >= 0 ? 2 * p->channels : 0;
    const size_t own = p->thread + p->per_thread * (size_t)thread;
    float *sum = direct_scratch(c, own + p->accumulated);
    double *totals = direct_scratch(c, own + p->total);
    memset(sum, 0, (size_t)two_rows * sizeof *sum);
    memset(totals, 0, (size_t)two_rows * sizeof *totals);
    for (ptrdiff_t n = begin; n < end; n++) {
        for (ptrdiff_t g = 0; g < p->groups; g++) {
            const ptrdiff_t first = g * p->rest, start = n * p->channels + first;
            const T *x = (const T *)c->in[p->x] + start, *dy = (const T *)c->in[p->dy] + start;
            const group_norm_stats t = stats_of(x, p->rest, p->epsilon);
            if (p->sums >= 0 && t.s > 0)
                add_to_sums(p->rest, x, t, dy, sum + first, sum + p->channels + first);
            else if (p->sums >= 0)
                wide_sums(p, x, dy, totals + first, totals + p->channels + first);
            if (p->y >= 0)
                write_dx(p, x, t, (const float *)c->in[p->gamma] + first, dy,
                         (T *)c->out[p->y] + start);
        }
        if ((n - begin) % FLUSH == FLUSH - 1 || n == end - 1)
            flush_sums(two_rows, sum, totals);
    }
    float *partial = (float *)direct_scratch(c, p->partial) + job * two_rows;
    for (ptrdiff_t i = 0; i < two_rows; i++)
        partial[i] = (float)totals[i];
}

const group_norm_code TYPED(group_norm_rows) = {{NULL, forward, NULL},
                                                {NULL, backward, group_norm_add_partials}};
