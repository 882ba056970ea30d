/* rows.c - groups that are contiguous: those of images of one pixel, and layer norm's rows. A job
 * is a segment of the rows. Compiled as element.h says. */
#include "backends/direct/arith.h"
#include "backends/direct/element.h"
#include "group_norm.h"

enum { PIECE = 1024, FLUSH = 64 }; /* elements, and rows, summed in float */

/* Of x - shift and its square. */
typedef struct {
    double sum, square;
} powers;

static powers powers_of(const T *x, ptrdiff_t n, float shift)
{
    powers p = {0, 0};
    for (ptrdiff_t first = 0; first < n; first += PIECE) {
        const ptrdiff_t end = min(first + PIECE, n);
        float sum = 0, square = 0;
#pragma omp simd reduction(+ : sum, square)
        for (ptrdiff_t i = first; i < end; i++) {
            float d = ld(x[i]) - shift;
            sum += d;
            square += d * d;
        }
        p.sum += (double)sum;
        p.square += (double)square;
    }
    return p;
}

static group_norm_stats stats_of(const T *x, ptrdiff_t n, double epsilon)
{
    const float shift = (float)(powers_of(x, n, 0).sum / (double)n);
    const powers p = powers_of(x, n, shift);
    return group_norm_stats_of(shift, p.sum, p.square, (double)n, epsilon);
}

static void normalise(ptrdiff_t n, const T *x, group_norm_stats t, const float *gamma,
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
            normalise(p->rest, x, stats_of(x, p->rest, p->epsilon), gamma + first, beta + first,
                      (T *)c->out[p->y] + start);
        }
}

/* ---- gradients ---- */

/* Of w = gamma * dy, and of w * xhat. */
static powers products_of(ptrdiff_t n, const T *x, group_norm_stats t, const float *gamma,
                          const T *dy)
{
    powers p = {0, 0};
    for (ptrdiff_t first = 0; first < n; first += PIECE) {
        const ptrdiff_t end = min(first + PIECE, n);
        float sum = 0, product = 0;
#pragma omp simd reduction(+ : sum, product)
        for (ptrdiff_t i = first; i < end; i++) {
            float w = gamma[i] * ld(dy[i]);
            sum += w;
            product += w * (((ld(x[i]) - t.shift) - t.delta) * t.s);
        }
        p.sum += (double)sum;
        p.square += (double)product;
    }
    return p;
}

static void write_dx(ptrdiff_t n, const T *x, group_norm_stats t, const float *gamma, const T *dy,
                     T *dx)
{
    const powers p = products_of(n, x, t, gamma, dy);
    const float mean = (float)(p.sum / (double)n), along = (float)(p.square / (double)n);
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
    float *sums = direct_scratch(c, own + p->accumulated);
    double *totals = direct_scratch(c, own + p->total);
    memset(sums, 0, (size_t)two_rows * sizeof *sums);
    memset(totals, 0, (size_t)two_rows * sizeof *totals);
    for (ptrdiff_t n = begin; n < end; n++) {
        for (ptrdiff_t g = 0; g < p->groups; g++) {
            const ptrdiff_t first = g * p->rest, start = n * p->channels + first;
            const T *x = (const T *)c->in[p->x] + start, *dy = (const T *)c->in[p->dy] + start;
            const group_norm_stats t = stats_of(x, p->rest, p->epsilon);
            if (p->sums >= 0)
                add_to_sums(p->rest, x, t, dy, sums + first, sums + p->channels + first);
            if (p->y >= 0)
                write_dx(p->rest, x, t, (const float *)c->in[p->gamma] + first, dy,
                         (T *)c->out[p->y] + start);
        }
        if ((n - begin) % FLUSH == FLUSH - 1 || n == end - 1)
            flush_sums(two_rows, sums, totals);
    }
    float *part = (float *)direct_scratch(c, p->part) + job * two_rows;
    for (ptrdiff_t i = 0; i < two_rows; i++)
        part[i] = (float)totals[i];
}

const group_norm_code TYPED(group_norm_rows) = {{NULL, forward, NULL},
                                                {NULL, backward, group_norm_add_parts}};
