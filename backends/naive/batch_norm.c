/* batch_norm.c - batch normalization; see ops/batch_norm.c for the formulas.
 *
 * Sums over a whole batch are in double for every type. A task owns up to BLOCK channels and
 * walks memory in order, so a channel's sum has one order for any number of threads. The
 * variance is the mean of (x - mean)^2 in a second pass, so that nothing cancels. */
#include <math.h>

#include "channels.h"
#include "kernels.h"

enum { BLOCK = 16, PARALLEL_NORM = 1 << 13 };

/* Channels first .. first + count of an image. */
typedef struct {
    channels v;
    ptrdiff_t first, count;
} block;

static block block_of(channels v, ptrdiff_t i)
{
    ptrdiff_t first = i * BLOCK, left = v.c - first;
    return (block){v, first, left < BLOCK ? left : BLOCK};
}

static ptrdiff_t blocks_of(channels v) { return (v.c + BLOCK - 1) / BLOCK; }

/* Sets sum[j] to the sum of (x - shift[j])^power over channel first + j, power 1 or 2. */
static void sum_powers(block p, const T *x, const double shift[BLOCK], int power, double sum[BLOCK])
{
    for (ptrdiff_t j = 0; j < BLOCK; j++)
        sum[j] = 0;
    for (ptrdiff_t o = 0; o < p.v.outer; o++)
        for (ptrdiff_t j = 0; j < p.count; j++) {
            const T *row = x + (o * p.v.c + p.first + j) * p.v.inner;
            for (ptrdiff_t i = 0; i < p.v.inner; i++) {
                double d = (double)ld(row + i) - shift[j];
                sum[j] += power == 1 ? d : d * d;
            }
        }
}

adj_status KERNEL(batch_norm_stats)(const adj_call *c)
{
    const adj_node *y = c->group->node[0];
    const adj_format_attrs *a = y->attrs;
    const T *x = operand(c, 0);
    const channels v = channels_of(y->in[0]->type.shape, a->format);
    ptrdiff_t blocks = blocks_of(v), m = v.outer * v.inner;
    S *mean = c->out[0], *var = mean + v.c;

#pragma omp parallel for if (m * v.c > PARALLEL_NORM)
    for (ptrdiff_t b = 0; b < blocks; b++) {
        const block p = block_of(v, b);
        double shift[BLOCK] = {0}, sum[BLOCK];
        sum_powers(p, x, shift, 1, sum);
        for (ptrdiff_t j = 0; j < p.count; j++)
            shift[j] = m > 0 ? sum[j] / (double)m : 0;
        sum_powers(p, x, shift, 2, sum);
        for (ptrdiff_t j = 0; j < p.count; j++) {
            mean[p.first + j] = (S)shift[j];
            var[p.first + j] = (S)(m > 0 ? sum[j] / (double)m : 0);
        }
    }
    return ADJ_OK;
}

static double inverse_deviation(S var, double epsilon) { return 1 / sqrt((double)var + epsilon); }

adj_status KERNEL(batch_norm_grad_sums)(const adj_call *c)
{
    const adj_node *y = c->group->node[0];
    const adj_batch_norm_attrs *a = y->attrs;
    const T *x = operand(c, 0), *dy = operand(c, 2);
    const channels v = channels_of(y->in[0]->type.shape, a->format);
    const S *mean = operand(c, 1), *var = mean + v.c;
    ptrdiff_t blocks = blocks_of(v);
    S *dgamma = c->out[0], *dbeta = dgamma + v.c;

#pragma omp parallel for if (v.outer * v.inner * v.c > PARALLEL_NORM)
    for (ptrdiff_t b = 0; b < blocks; b++) {
        const block p = block_of(v, b);
        double product[BLOCK] = {0}, sum[BLOCK] = {0};
        for (ptrdiff_t o = 0; o < v.outer; o++)
            for (ptrdiff_t j = 0; j < p.count; j++) {
                ptrdiff_t at = (o * v.c + p.first + j) * v.inner;
                for (ptrdiff_t i = 0; i < v.inner; i++) {
                    double d = (double)ld(dy + at + i);
                    sum[j] += d;
                    product[j] += d * ((double)ld(x + at + i) - (double)mean[p.first + j]);
                }
            }
        for (ptrdiff_t j = 0; j < p.count; j++) {
            dbeta[p.first + j] = (S)sum[j];
            dgamma[p.first + j] = (S)(product[j] * inverse_deviation(var[p.first + j], a->epsilon));
        }
    }
    return ADJ_OK;
}

/* Returns the bytes of three coefficients per channel. */
size_t KERNEL(batch_norm_scratch)(const adj_node *n)
{
    const adj_batch_norm_attrs *a = n->attrs;
    return (size_t)channels_of(n->in[0]->type.shape, a->format).c * 3 * sizeof(A);
}

/* y = (x - mean) * scale + beta, scale = gamma / sqrt(var + epsilon). */
adj_status KERNEL(batch_norm)(const adj_call *c)
{
    const adj_node *node = c->group->node[0];
    const adj_batch_norm_attrs *a = node->attrs;
    const channels v = channels_of(node->in[0]->type.shape, a->format);
    const T *x = operand(c, 0);
    const S *mean = operand(c, 1), *gamma = operand(c, 2), *beta = operand(c, 3);
    A *scale = c->scratch;
    T *y = c->out[0];

    for (ptrdiff_t k = 0; k < v.c; k++)
        scale[k] = (A)((double)gamma[k] * inverse_deviation(mean[v.c + k], a->epsilon));
#pragma omp parallel for if (v.outer * v.c * v.inner > PARALLEL_NORM)
    for (ptrdiff_t o = 0; o < v.outer; o++)
        for (ptrdiff_t k = 0; k < v.c; k++) {
            ptrdiff_t at = (o * v.c + k) * v.inner;
            for (ptrdiff_t i = 0; i < v.inner; i++)
                st(y + at + i, (ld(x + at + i) - (A)mean[k]) * scale[k] + (A)beta[k]);
        }
    return ADJ_OK;
}

/* dx = scale * (dy - q1 - (x - mean) * q0) with q1 = dbeta / m and q0 = dgamma / m / sqrt(var +
 * epsilon). */
adj_status KERNEL(batch_norm_grad)(const adj_call *c)
{
    const adj_node *node = c->group->node[0];
    const adj_batch_norm_attrs *a = node->attrs;
    const channels v = channels_of(node->in[0]->type.shape, a->format);
    const T *x = operand(c, 0), *dy = operand(c, 3);
    const S *mean = operand(c, 1), *gamma = operand(c, 2), *sums = operand(c, 4);
    double m = (double)(v.outer * v.inner);
    A *scale = c->scratch, *q0 = scale + v.c, *q1 = q0 + v.c;
    T *dx = c->out[0];

    for (ptrdiff_t k = 0; k < v.c; k++) {
        double s = inverse_deviation(mean[v.c + k], a->epsilon);
        scale[k] = (A)((double)gamma[k] * s);
        q0[k] = (A)((double)sums[k] / m * s);
        q1[k] = (A)((double)sums[v.c + k] / m);
    }
#pragma omp parallel for if (v.outer * v.c * v.inner > PARALLEL_NORM)
    for (ptrdiff_t o = 0; o < v.outer; o++)
        for (ptrdiff_t k = 0; k < v.c; k++) {
            ptrdiff_t at = (o * v.c + k) * v.inner;
            for (ptrdiff_t i = 0; i < v.inner; i++) {
                A centerd = ld(x + at + i) - (A)mean[k];
                st(dx + at + i, scale[k] * (ld(dy + at + i) - q1[k] - centerd * q0[k]));
            }
        }
    return ADJ_OK;
}
