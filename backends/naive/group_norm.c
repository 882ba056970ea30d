/* group_norm.c - group normalization; see ops/group_norm.c for the formulas.
 *
 * x is viewed as [n, outer, groups, rest, inner]: inner is 1 if channels are last, else outer
 * is. One thread sums a group in memory order, in double for every type. The variance is the
 * mean of (x - mean)^2 in a second pass, so that nothing cancels. */
#include <math.h>

#include "channels.h"
#include "kernels.h"

enum { PARALLEL_NORM = 1 << 13 };

typedef struct {
    ptrdiff_t n, outer, groups, rest, inner;
    double epsilon;
} view;

static view view_of(const adj_node *node)
{
    const adj_group_norm_attrs *a = node->attrs;
    adj_shape x = node->in[0]->type.shape, image = x;
    image.dim[0] = 1;
    channels v = channels_of(image, a->format);
    return (view){x.dim[0], v.outer, a->groups, v.c / a->groups, v.inner, a->epsilon};
}

static ptrdiff_t elements(view v) { return v.n * v.outer * v.groups * v.rest * v.inner; }

/* Returns the offset of row o of group k, groups being numbered across images: rest * inner
 * elements, inner of each channel. */
static ptrdiff_t row_at(view v, ptrdiff_t k, ptrdiff_t o)
{
    return ((k / v.groups * v.outer + o) * v.groups + k % v.groups) * v.rest * v.inner;
}

typedef struct {
    double mean, s; /* s = 1 / sqrt(var + epsilon) */
} statistics;

/* Returns the sum of (x - shift)^power over a group, power 1 or 2. */
static double sum_powers(view v, ptrdiff_t k, const T *x, double shift, int power)
{
    double sum = 0;
    for (ptrdiff_t o = 0; o < v.outer; o++)
        for (ptrdiff_t i = 0, at = row_at(v, k, o); i < v.rest * v.inner; i++) {
            double d = (double)ld(x + at + i) - shift;
            sum += power == 1 ? d : d * d;
        }
    return sum;
}

static statistics statistics_of(view v, ptrdiff_t k, const T *x)
{
    double m = (double)(v.outer * v.rest * v.inner);
    double mean = sum_powers(v, k, x, 0, 1) / m;
    return (statistics){mean, 1 / sqrt(sum_powers(v, k, x, mean, 2) / m + v.epsilon)};
}

/* y = (x - mean) * s * gamma + beta */
adj_status KERNEL(group_norm)(const adj_call *c)
{
    const view v = view_of(c->group->node[0]);
    const T *x = operand(c, 0);
    const S *gamma = operand(c, 1), *beta = operand(c, 2);
    T *y = c->out[0];

#pragma omp parallel for if (elements(v) > PARALLEL_NORM)
    for (ptrdiff_t k = 0; k < v.n * v.groups; k++) {
        const statistics t = statistics_of(v, k, x);
        ptrdiff_t first = k % v.groups * v.rest;
        for (ptrdiff_t o = 0; o < v.outer; o++)
            for (ptrdiff_t i = 0, at = row_at(v, k, o); i < v.rest * v.inner; i++) {
                ptrdiff_t channel = first + i / v.inner;
                double xhat = ((double)ld(x + at + i) - t.mean) * t.s;
                st(y + at + i, (A)(xhat * (double)gamma[channel] + (double)beta[channel]));
            }
    }
    return ADJ_OK;
}

/* dx = s * (w - mean(w) - xhat * mean(w * xhat)), w = gamma * dy */
adj_status KERNEL(group_norm_grad)(const adj_call *c)
{
    const view v = view_of(c->group->node[0]);
    const T *x = operand(c, 0), *dy = operand(c, 2);
    const S *gamma = operand(c, 1);
    const double m = (double)(v.outer * v.rest * v.inner);
    T *dx = c->out[0];

#pragma omp parallel for if (elements(v) > PARALLEL_NORM)
    for (ptrdiff_t k = 0; k < v.n * v.groups; k++) {
        const statistics t = statistics_of(v, k, x);
        ptrdiff_t first = k % v.groups * v.rest;
        double sum = 0, product = 0;
        for (ptrdiff_t o = 0; o < v.outer; o++)
            for (ptrdiff_t i = 0, at = row_at(v, k, o); i < v.rest * v.inner; i++) {
                double w = (double)gamma[first + i / v.inner] * (double)ld(dy + at + i);
                sum += w;
                product += w * ((double)ld(x + at + i) - t.mean) * t.s;
            }
        for (ptrdiff_t o = 0; o < v.outer; o++)
            for (ptrdiff_t i = 0, at = row_at(v, k, o); i < v.rest * v.inner; i++) {
                double w = (double)gamma[first + i / v.inner] * (double)ld(dy + at + i);
                double xhat = ((double)ld(x + at + i) - t.mean) * t.s;
                st(dx + at + i, (A)(t.s * (w - sum / m - xhat * product / m)));
            }
    }
    return ADJ_OK;
}

/* Returns the bytes of the statistics of all groups. */
size_t KERNEL(group_norm_grad_sums_scratch)(const adj_node *n)
{
    int64_t groups = ((const adj_group_norm_attrs *)n->attrs)->groups;
    return (size_t)(n->in[0]->type.shape.dim[0] * groups) * sizeof(statistics);
}

adj_status KERNEL(group_norm_grad_sums)(const adj_call *c)
{
    const view v = view_of(c->group->node[0]);
    const T *x = operand(c, 0), *dy = operand(c, 1);
    const ptrdiff_t channels = v.groups * v.rest;
    statistics *t = c->scratch;
    S *dgamma = c->out[0], *dbeta = dgamma + channels;

#pragma omp parallel for if (elements(v) > PARALLEL_NORM)
    for (ptrdiff_t k = 0; k < v.n * v.groups; k++)
        t[k] = statistics_of(v, k, x);
#pragma omp parallel for if (elements(v) > PARALLEL_NORM)
    for (ptrdiff_t channel = 0; channel < channels; channel++) {
        double sum = 0, product = 0;
        for (ptrdiff_t o = 0; o < v.n * v.outer; o++) {
            const statistics *of = &t[o / v.outer * v.groups + channel / v.rest];
            ptrdiff_t at = (o * channels + channel) * v.inner;
            for (ptrdiff_t i = 0; i < v.inner; i++) {
                double d = (double)ld(dy + at + i);
                sum += d;
                product += d * ((double)ld(x + at + i) - of->mean) * of->s;
            }
        }
        dgamma[channel] = (S)product;
        dbeta[channel] = (S)sum;
    }
    return ADJ_OK;
}
