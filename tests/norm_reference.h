/* norm_reference.h - batch, group and layer norm and their gradients by definition, in long double.
 */
#ifndef TESTS_NORM_REFERENCE_H
#define TESTS_NORM_REFERENCE_H

#include <math.h>
#include <stdlib.h>

#include "adjoint.h"

typedef struct {
    adj_shape s;
    int64_t groups; /* groups of an image's channels; 0: batch norm, each channel of all images */
    double epsilon;
    adj_format format;
} norm_problem;

static inline int64_t norm_channels(const norm_problem *p)
{
    return p->s.dim[p->format == ADJ_NCHW ? 1 : p->s.rank - 1];
}

static inline int64_t norm_channel_of(const norm_problem *p, int64_t i)
{
    for (int64_t d = p->s.rank - 1; d > 1 && p->format == ADJ_NCHW; d--)
        i /= p->s.dim[d];
    return i % norm_channels(p);
}

/* The number of element i's group among all groups. */
static inline int64_t norm_group_of(const norm_problem *p, int64_t i)
{
    const int64_t channel = norm_channel_of(p, i),
                  image = i / (adj_shape_elems(p->s) / p->s.dim[0]);
    return p->groups == 0 ? channel : image * p->groups + channel / (norm_channels(p) / p->groups);
}

/* The sums are dgamma and dbeta; stats: all means, then all variances. */
typedef struct {
    double *stats, *y, *sums, *dx;
} norm_answers;

static inline void norm_answers_free(norm_answers *r)
{
    free(r->stats), free(r->y), free(r->sums), free(r->dx);
}

/* Means over a group: of x, of (x - mean)^2, of w = gamma dy, of w xhat. */
typedef struct {
    long double mean, var, w, w_xhat;
} norm_means;

static inline norm_answers norm_reference(const norm_problem *p, const double *x,
                                          const double *gamma, const double *beta, const double *dy)
{
    const int64_t n = adj_shape_elems(p->s), channels = norm_channels(p);
    const int64_t groups = p->groups == 0 ? channels : p->s.dim[0] * p->groups;
    norm_answers r = {calloc((size_t)groups * 2, sizeof(double)), calloc((size_t)n, sizeof(double)),
                      calloc((size_t)channels * 2, sizeof(double)),
                      calloc((size_t)n, sizeof(double))};
    norm_means *group = calloc((size_t)groups, sizeof *group);
    const long double m = (long double)n / (long double)groups;
    for (int64_t i = 0; i < n; i++)
        group[norm_group_of(p, i)].mean += x[i] / m;
    for (int64_t i = 0; i < n; i++) {
        norm_means *k = &group[norm_group_of(p, i)];
        k->var += (x[i] - k->mean) * (x[i] - k->mean) / m;
    }
    for (int64_t i = 0; i < n; i++) {
        norm_means *k = &group[norm_group_of(p, i)];
        const int64_t c = norm_channel_of(p, i);
        const long double xhat = (x[i] - k->mean) / sqrtl(k->var + p->epsilon);
        r.y[i] = (double)(xhat * gamma[c] + beta[c]);
        r.sums[c] += (double)(dy[i] * xhat);
        r.sums[channels + c] += dy[i];
        k->w += gamma[c] * dy[i] / m;
        k->w_xhat += gamma[c] * dy[i] * xhat / m;
    }
    for (int64_t i = 0; i < n; i++) {
        const norm_means *k = &group[norm_group_of(p, i)];
        const long double deviation = sqrtl(k->var + p->epsilon);
        const long double w = gamma[norm_channel_of(p, i)] * dy[i];
        r.dx[i] = (double)((w - k->w - (x[i] - k->mean) / deviation * k->w_xhat) / deviation);
    }
    for (int64_t k = 0; k < groups; k++)
        r.stats[k] = (double)group[k].mean, r.stats[groups + k] = (double)group[k].var;
    free(group);
    return r;
}

#endif
