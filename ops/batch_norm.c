/* batch_norm.c - batch normalization as ops that each pass over memory once.
 *
 * Per channel, over the m elements of the other axes, with s = 1 / sqrt(var + epsilon) and xhat
 * = (x - mean) * s:
 *   stats = batch_norm_stats(x)                        mean and biased var, [2, c]
 *   y     = batch_norm(x, stats, gamma, beta)          xhat * gamma + beta
 *   sums  = batch_norm_grad_sums(x, stats, dy)         sum(dy * xhat) and sum(dy), [2, c]
 *   dx    = batch_norm_grad(x, stats, gamma, dy, sums)
 *           gamma * s * (dy - (sums[1] + xhat * sums[0]) / m)
 * sums is dgamma and dbeta. Statistics, gamma, beta and sums have the statistics type: f32 for
 * half inputs, else x's.
 *
 * batch_norm's gradient rule depends on where stats comes from. If it is batch_norm_stats of the
 * same x, dx is the whole derivative, and nothing flows to stats. Otherwise, as with running
 * statistics, stats is an operand like the others. The rules of the other three ops are plain
 * partial derivatives, written with builders, so that any order of derivative works. */
#include <float.h>

#include "channel.h"
#include "grad.h"
#include "ops/rules/rules.h"

/* Returns the elements per channel, at least 1. */
static double per_channel(const adj_node *x, int64_t format)
{
    int64_t c = channels_of(x, format), all = adj_shape_elems(x->type.shape);
    return all > 0 ? (double)(all / c) : 1;
}

/* ---- pieces of gradient rules ---- */

/* 1 / sqrt(var + epsilon), [c] */
static adj_node *inverse_deviation(adj_node *stats, double epsilon)
{
    adj_node *var = adj_stats_row(stats, 1);
    adj_node *deviation = adj_sqrt(adj_add(var, adj_fill_like(var, epsilon)));
    return adj_div(adj_fill_like(var, 1), deviation);
}

/* ---- gradient rules ---- */

/* d mean = 1/m; d var = 2 (x - mean) / m. Computed in the statistics type, since x - mean
 * cancels. */
static void stats_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    const adj_format_attrs *a = y->attrs;
    adj_node *x = y->in[0], *wide = adj_in_dtype(x, y->type.dtype);
    double m = per_channel(x, a->format);
    adj_node *dmean = adj_scale(adj_stats_row(dy, 0), 1 / m),
             *dvar = adj_scale(adj_stats_row(dy, 1), 2 / m);
    adj_node *centered = adj_sub(wide, norm_along(adj_stats_row(y, 0), x, a->format));
    adj_node *of_mean = norm_along(dmean, x, a->format);
    adj_node *of_var = adj_mul(centered, norm_along(dvar, x, a->format));

    dx[0] = adj_in_dtype(adj_add(of_var, of_mean), x->type.dtype);
}

/* Gradient of stats through y = xhat * gamma + beta, for given dgamma and dbeta: dmean =
 * -gamma*s * dbeta, dvar = -gamma*s^2/2 * dgamma. */
static adj_node *to_stats(adj_node *gamma, adj_node *s, adj_node *dgamma, adj_node *dbeta)
{
    adj_node *k = adj_mul(gamma, s);
    adj_node *dvar = adj_scale(adj_mul(adj_mul(k, s), dgamma), -0.5);
    return adj_stats_of(adj_neg(adj_mul(k, dbeta)), dvar);
}

static void norm_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    const adj_batch_norm_attrs *a = y->attrs;
    adj_node *x = y->in[0], *stats = y->in[1], *gamma = y->in[2];
    adj_node *sums = adj_batch_norm_grad_sums(x, stats, dy, a->epsilon, (adj_format)a->format);
    const adj_format_attrs *of = stats->attrs;
    int training =
        stats->op == &adj_op_batch_norm_stats && stats->in[0] == x && of->format == a->format;

    dx[2] = adj_stats_row(sums, 0);
    dx[3] = adj_stats_row(sums, 1);
    if (training) {
        dx[0] = adj_batch_norm_grad(x, stats, gamma, dy, sums, a->epsilon, (adj_format)a->format);
        dx[1] = NULL;
        return;
    }
    adj_node *s = inverse_deviation(stats, a->epsilon);
    dx[0] = norm_times(dy, adj_mul(gamma, s), a->format);
    dx[1] = to_stats(gamma, s, dx[2], dx[3]);
}

/* The sums are linear in dy: their adjoint is batch norm with the rows of the upstream gradient
 * as gamma and beta. */
static void sums_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    const adj_batch_norm_attrs *a = y->attrs;
    adj_node *x = y->in[0], *stats = y->in[1], *e = adj_stats_row(dy, 0);
    adj_node *s = inverse_deviation(stats, a->epsilon);

    dx[0] = norm_times(y->in[2], adj_mul(e, s), a->format);
    adj_node *dbeta = adj_stats_row(y, 1), *dgamma = adj_stats_row(y, 0);
    dx[1] = to_stats(e, s, dgamma, dbeta);
    dx[2] = adj_batch_norm(x, stats, e, adj_stats_row(dy, 1), a->epsilon, (adj_format)a->format);
}

/* y = k * (dy - q1 - xhat * q0) with k = gamma*s and q = sums / m. For the incoming e, E0 = sum(e *
 * xhat), E1 = sum(e) and R = sum(e * (dy - q1 - xhat * q0)) = sum(e * dy) - q1*E1 - q0*E0:
 *   x: -k*q0*s * e    gamma: s*R    dy: k*e    sums: -k/m * (E0, E1)
 *   mean: k*q0*s * E1    var: -k*s^2/2 * (R - q0*E0) */
static void grad_grad(adj_node *y, adj_node *e, adj_node *dx[])
{
    const adj_batch_norm_attrs *a = y->attrs;
    adj_node *x = y->in[0], *stats = y->in[1], *dy = y->in[3];
    double m = per_channel(x, a->format);
    adj_node *esums = adj_batch_norm_grad_sums(x, stats, e, a->epsilon, (adj_format)a->format);
    adj_node *s = inverse_deviation(stats, a->epsilon), *k = adj_mul(y->in[2], s);
    adj_node *e0 = adj_stats_row(esums, 0), *e1 = adj_stats_row(esums, 1);
    adj_node *q0 = adj_scale(adj_stats_row(y->in[4], 0), 1 / m),
             *q1 = adj_scale(adj_stats_row(y->in[4], 1), 1 / m);
    adj_node *kq0s = adj_mul(adj_mul(k, q0), s), *q0e0 = adj_mul(q0, e0);
    adj_node *q1e1 = adj_mul(q1, e1);
    adj_node *r = adj_sub(adj_sub(norm_dot(e, dy, a->format), q1e1), q0e0);
    adj_node *rest = adj_sub(r, q0e0), *dvar = adj_mul(adj_mul(k, adj_square(s)), rest);
    adj_node *minus_k_m = adj_scale(k, -1 / m);

    dx[0] = norm_times(e, adj_neg(kq0s), a->format);
    dvar = adj_scale(dvar, -0.5);
    dx[1] = adj_stats_of(adj_mul(kq0s, e1), dvar);
    dx[2] = adj_mul(s, r);
    dx[3] = norm_times(e, k, a->format);
    adj_node *second = adj_mul(minus_k_m, e1);
    dx[4] = adj_stats_of(adj_mul(minus_k_m, e0), second);
}

/* ---- builders ---- */

static adj_node *with_epsilon(const adj_op *op, adj_node *const in[], double epsilon,
                              adj_format format)
{
    const adj_batch_norm_attrs a = {.epsilon = epsilon, .format = format};
    return in[0] != NULL ? adj_node_new(in[0]->graph, op, op->n_in, in, &a) : NULL;
}

adj_node *adj_batch_norm_stats(adj_node *x, adj_format format)
{
    return adj_node_new1(&adj_op_batch_norm_stats, x, &(adj_format_attrs){format});
}

adj_node *adj_batch_norm(adj_node *x, adj_node *stats, adj_node *gamma, adj_node *beta,
                         double epsilon, adj_format format)
{
    adj_node *const in[] = {x, stats, gamma, beta};
    return with_epsilon(&adj_op_batch_norm, in, epsilon, format);
}

adj_node *adj_batch_norm_grad_sums(adj_node *x, adj_node *stats, adj_node *dy, double epsilon,
                                   adj_format format)
{
    adj_node *const in[] = {x, stats, dy};
    return with_epsilon(&adj_op_batch_norm_grad_sums, in, epsilon, format);
}

adj_node *adj_batch_norm_grad(adj_node *x, adj_node *stats, adj_node *gamma, adj_node *dy,
                              adj_node *sums, double epsilon, adj_format format)
{
    adj_node *const in[] = {x, stats, gamma, dy, sums};
    return with_epsilon(&adj_op_batch_norm_grad, in, epsilon, format);
}

/* ---- facts ---- */

static const adj_schema schema = {
    .size = sizeof(adj_batch_norm_attrs),
    .attr = {{"epsilon", ADJ_ATTR_REAL, .offset = offsetof(adj_batch_norm_attrs, epsilon),
              " epsilon ", ">= 0", 0, DBL_MAX, .fallback = 1e-3},
             {"data_format", ADJ_ATTR_FORMAT, .offset = offsetof(adj_batch_norm_attrs, format)}}};

/* Variances are positive; means may be any number. */
static void stats_domain(const adj_node *n, int i, int64_t count, double v[])
{
    (void)n;
    if (i == 1)
        adj_spread(count, v, 0.5, 2);
}

const adj_op adj_op_batch_norm_stats = {.name = "batch_norm_stats",
                                        .n_in = 1,
                                        .flags = ADJ_OP_HALF | ADJ_OP_HALF_IMAGES,
                                        .schema = &format_schema,
                                        .infer = channel_infer,
                                        .grad = stats_grad,
                                        .operand = {"x"},
                                        .images = ADJ_IN(0)};
const adj_op adj_op_batch_norm = {.name = "batch_norm",
                                  .n_in = 4,
                                  .flags = ADJ_OP_HALF | ADJ_OP_HALF_IMAGES | ADJ_OP_CHEAP,
                                  .schema = &schema,
                                  .infer = channel_infer,
                                  .grad = norm_grad,
                                  .fold = batch_norm_fold,
                                  .domain = stats_domain,
                                  .operand = {"x", "stats", "gamma", "beta"},
                                  .example = {ADJ_EXAMPLE_X, ADJ_EXAMPLE_COMPUTED_STATISTICS,
                                              ADJ_EXAMPLE_STATISTIC, ADJ_EXAMPLE_STATISTIC},
                                  .maker = {[1] = &adj_op_batch_norm_stats},
                                  .images = ADJ_IN(0) | ADJ_IMAGE_RESULT};
const adj_op adj_op_batch_norm_grad_sums = {
    .name = "batch_norm_grad_sums",
    .n_in = 3,
    .flags = ADJ_OP_HALF | ADJ_OP_HALF_IMAGES,
    .schema = &schema,
    .linear_in = ADJ_IN(2),
    .infer = channel_infer,
    .grad = sums_grad,
    .save_for_backward = batch_norm_recompute_mask,
    .domain = stats_domain,
    .operand = {"x", "stats", "dy"},
    .example = {ADJ_EXAMPLE_X, ADJ_EXAMPLE_COMPUTED_STATISTICS, ADJ_EXAMPLE_X},
    .maker = {[1] = &adj_op_batch_norm_stats},
    .images = ADJ_IN(0) | ADJ_IN(2)};
const adj_op adj_op_batch_norm_grad = {
    .name = "batch_norm_grad",
    .n_in = 5,
    .flags = ADJ_OP_HALF | ADJ_OP_HALF_IMAGES,
    .sum_in = ADJ_IN(3) | ADJ_IN(4),
    .schema = &schema,
    .infer = channel_infer,
    .grad = grad_grad,
    .save_for_backward = batch_norm_recompute_mask,
    .domain = stats_domain,
    .operand = {"x", "stats", "gamma", "dy", "sums"},
    .example = {ADJ_EXAMPLE_X, ADJ_EXAMPLE_COMPUTED_STATISTICS, ADJ_EXAMPLE_STATISTIC,
                ADJ_EXAMPLE_X, ADJ_EXAMPLE_STATISTICS},
    .maker = {[1] = &adj_op_batch_norm_stats, [4] = &adj_op_batch_norm_grad_sums},
    .images = ADJ_IN(0) | ADJ_IN(3) | ADJ_IMAGE_RESULT,
    .cancels_in = ADJ_IN(3) | ADJ_IN(4)};
