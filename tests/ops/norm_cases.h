/* norm_cases.h - what the tests of batch, group and layer norm share: how well each type is met,
 * the type of statistics, and a reference. */
#ifndef TESTS_OPS_NORM_CASES_H
#define TESTS_OPS_NORM_CASES_H

#include <math.h>

#include "expect.h"
#include "graph/op.h"

static const double eps = 1e-5;
static const double rounding[] = {
    [ADJ_F32] = 2e-6, [ADJ_F64] = 1e-10, [ADJ_F16] = 3e-3, [ADJ_BF16] = 2e-2};

static inline adj_dtype stats_dtype(adj_dtype x) { return x == ADJ_F64 ? ADJ_F64 : ADJ_F32; }

/* ---- the reference: one group at a time, an element being found by its place ---- */

typedef struct {
    adj_shape s;
    int64_t groups; /* of an image's channels; 0: batch norm, each channel of all images */
    int64_t c;
    adj_format format;
} problem;

static inline problem problem_of(adj_shape s, int64_t groups, adj_format format)
{
    return (problem){s, groups, s.dim[format == ADJ_NCHW ? 1 : s.rank - 1], format};
}

static inline int64_t channel_of(const problem *p, int64_t i)
{
    return unravel(i, p->s).dim[p->format == ADJ_NCHW ? 1 : p->s.rank - 1];
}

/* The number of element i's group among all groups. */
static inline int64_t group_of(const problem *p, int64_t i)
{
    int64_t channel = channel_of(p, i), image = unravel(i, p->s).dim[0];
    return p->groups == 0 ? channel : image * p->groups + channel / (p->c / p->groups);
}

/* The sums are dgamma and dbeta; stats: all means, then all variances. */
typedef struct {
    double *stats, *y, *sums, *dx;
} answers;

static inline void answers_free(answers *r)
{
    free(r->stats), free(r->y), free(r->sums), free(r->dx);
}

static inline answers reference(const problem *p, const double *x, const double *gamma,
                                const double *beta, const double *dy)
{
    const int64_t n = adj_shape_elems(p->s);
    const int64_t groups = p->groups == 0 ? p->c : p->s.dim[0] * p->groups;
    answers r = {calloc((size_t)groups * 2, sizeof(double)), calloc((size_t)n, sizeof(double)),
                 calloc((size_t)p->c * 2, sizeof(double)), calloc((size_t)n, sizeof(double))};
    const long double m = (long double)n / (long double)groups;
    for (int64_t k = 0; k < groups; k++) {
        long double mean = 0, var = 0, w_sum = 0, w_xhat = 0;
        for (int64_t i = 0; i < n; i++)
            mean += group_of(p, i) == k ? x[i] / m : 0;
        for (int64_t i = 0; i < n; i++)
            var += group_of(p, i) == k ? (x[i] - mean) * (x[i] - mean) / m : 0;
        const long double deviation = sqrtl(var + eps);
        for (int64_t i = 0; i < n; i++) {
            if (group_of(p, i) != k)
                continue;
            const int64_t c = channel_of(p, i);
            const long double xhat = (x[i] - mean) / deviation;
            r.y[i] = (double)(xhat * gamma[c] + beta[c]);
            r.sums[c] += (double)(dy[i] * xhat);
            r.sums[p->c + c] += dy[i];
            w_sum += gamma[c] * dy[i];
            w_xhat += gamma[c] * dy[i] * xhat;
        }
        for (int64_t i = 0; i < n; i++)
            if (group_of(p, i) == k)
                r.dx[i] = (double)((gamma[channel_of(p, i)] * dy[i] - w_sum / m -
                                    (x[i] - mean) / deviation * w_xhat / m) /
                                   deviation);
        r.stats[k] = (double)mean, r.stats[groups + k] = (double)var;
    }
    return r;
}

#endif
