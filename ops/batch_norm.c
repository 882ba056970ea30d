/* batch_norm.c - batch normalisation in the pieces that touch memory once each.
 *
 * Per channel, over the m elements of the other axes, with s = 1 / sqrt(var + epsilon) and
 * xhat = (x - mean) * s:
 *   stats = batch_norm_stats(x)                        mean and biased var, [2, c]
 *   y     = batch_norm(x, stats, gamma, beta)          xhat * gamma + beta
 *   sums  = batch_norm_grad_sums(x, stats, dy)         sum(dy * xhat) and sum(dy), [2, c]
 *   dx    = batch_norm_grad(x, stats, gamma, dy, sums)
 *           gamma * s * (dy - (sums[1] + xhat * sums[0]) / m)
 * sums is dgamma and dbeta. Statistics, gamma, beta and sums have the statistics type: f32 for half
 * inputs, else x's.
 *
 * batch_norm's rule depends on where stats comes from. batch_norm_stats of the same x: dx is the
 * whole derivative, and nothing flows to stats. Anything else, such as running statistics: stats is
 * an operand like the others. The rules of the other three are plain partial derivatives, written
 * with builders, so that any order of derivative works. */
#include <math.h>

#include "attr_lists.h"
#include "ops/rules/batch_norm.h"

static adj_dtype stats_dtype(adj_dtype x) { return x == ADJ_F64 ? ADJ_F64 : ADJ_F32; }

static int channel_axis(const adj_node *x, int64_t format)
{
    return format == ADJ_NCHW ? 1 : (int)x->type.shape.rank - 1;
}

static int64_t channels(const adj_node *x, int64_t format)
{
    return x->type.shape.dim[channel_axis(x, format)];
}

/* Elements per channel, at least 1. */
static double per_channel(const adj_node *x, int64_t format)
{
    int64_t c = channels(x, format), all = adj_shape_elems(x->type.shape);
    return all > 0 ? (double)(all / c) : 1;
}

/* ---- shape rules ---- */

static adj_status check_x(const adj_node *n)
{
    adj_type x = n->in[0]->type;

    if (!adj_is_float(x.dtype))
        return adj_fail(n->graph, ADJ_EDTYPE, "%s: x must be a float type (got %s)", n->op->name,
                        adj_dtype_name(x.dtype));
    if (x.shape.rank < 2 || x.shape.rank > 5)
        return adj_fail(n->graph, ADJ_ESHAPE,
                        "%s: x has the wrong rank (got %s, expected rank 2 to 5)", n->op->name,
                        adj_shape_text(x.shape).s);
    return ADJ_OK;
}

/* [rows, c], or [c] for rows == 0, of the statistics type. */
static adj_type stats_type(const adj_node *x, int64_t format, int rows)
{
    int64_t c = channels(x, format);
    adj_shape shape = {.rank = 1, .dim = {c}};
    if (rows > 0)
        shape = (adj_shape){.rank = 2, .dim = {rows, c}};
    return (adj_type){stats_dtype(x->type.dtype), shape};
}

static adj_status check_operand(const adj_node *n, int i, const char *name, adj_type want)
{
    adj_type got = n->in[i]->type;

    if (got.dtype != want.dtype)
        return adj_fail(n->graph, ADJ_EDTYPE, "%s: %s has the wrong type (got %s, expected %s)",
                        n->op->name, name, adj_dtype_name(got.dtype), adj_dtype_name(want.dtype));
    if (!adj_shape_equal(got.shape, want.shape))
        return adj_fail(n->graph, ADJ_ESHAPE, "%s: %s has the wrong shape (got %s, expected %s)",
                        n->op->name, name, adj_shape_text(got.shape).s,
                        adj_shape_text(want.shape).s);
    return ADJ_OK;
}

static adj_status stats_infer(const adj_node *n, void *attrs, adj_type *out)
{
    const adj_format_attrs *a = attrs;
    adj_status status = check_x(n);
    if (status == ADJ_OK)
        *out = stats_type(n->in[0], a->format, 2);
    return status;
}

static adj_status norm_infer(const adj_node *n, void *attrs, adj_type *out)
{
    const adj_batch_norm_attrs *a = attrs;
    const adj_node *x = n->in[0];
    adj_status status = check_x(n);
    if (status == ADJ_OK)
        status = check_operand(n, 1, "stats", stats_type(x, a->format, 2));
    if (status == ADJ_OK)
        status = check_operand(n, 2, "gamma", stats_type(x, a->format, 0));
    if (status == ADJ_OK)
        status = check_operand(n, 3, "beta", stats_type(x, a->format, 0));
    *out = x->type;
    return status;
}

static adj_status sums_infer(const adj_node *n, void *attrs, adj_type *out)
{
    const adj_batch_norm_attrs *a = attrs;
    const adj_node *x = n->in[0];
    adj_status status = check_x(n);
    if (status == ADJ_OK)
        status = check_operand(n, 1, "stats", stats_type(x, a->format, 2));
    if (status == ADJ_OK)
        status = check_operand(n, 2, "dy", x->type);
    if (status == ADJ_OK)
        *out = stats_type(x, a->format, 2);
    return status;
}

static adj_status grad_infer(const adj_node *n, void *attrs, adj_type *out)
{
    const adj_batch_norm_attrs *a = attrs;
    const adj_node *x = n->in[0];
    adj_status status = check_x(n);
    if (status == ADJ_OK)
        status = check_operand(n, 1, "stats", stats_type(x, a->format, 2));
    if (status == ADJ_OK)
        status = check_operand(n, 2, "gamma", stats_type(x, a->format, 0));
    if (status == ADJ_OK)
        status = check_operand(n, 3, "dy", x->type);
    if (status == ADJ_OK)
        status = check_operand(n, 4, "sums", stats_type(x, a->format, 2));
    *out = x->type;
    return status;
}

/* ---- what gradient rules are written with ---- */

static adj_node *in_dtype(adj_node *v, adj_dtype dtype)
{
    return v == NULL || v->type.dtype == dtype ? v : adj_cast(v, dtype);
}

/* Row 0 or 1 of [2, c], as [c]. */
static adj_node *row(adj_node *v, int i)
{
    if (v == NULL)
        return NULL;
    int64_t c = v->type.shape.dim[1];
    adj_node *r =
        adj_slice(v, (adj_shape){.rank = 2, .dim = {i, 0}}, (adj_shape){.rank = 2, .dim = {1, c}});
    return adj_reshape(r, (adj_shape){.rank = 1, .dim = {c}});
}

/* [c], [c] -> [2, c] */
static adj_node *two_rows(adj_node *a, adj_node *b)
{
    if (a == NULL || b == NULL)
        return NULL;
    adj_shape one = {.rank = 2, .dim = {1, a->type.shape.dim[0]}};
    adj_node *const rows[] = {adj_reshape(a, one), adj_reshape(b, one)};
    return adj_concat(2, rows, 0);
}

/* [c] shaped to broadcast over x's channels. */
static adj_node *along(adj_node *v, const adj_node *x, int64_t format)
{
    adj_shape shape = {.rank = x->type.shape.rank};
    for (int i = 0; i < shape.rank; i++)
        shape.dim[i] = 1;
    shape.dim[channel_axis(x, format)] = channels(x, format);
    return adj_reshape(v, shape);
}

/* 1 / sqrt(var + epsilon), [c] */
static adj_node *inverse_deviation(adj_node *stats, double epsilon)
{
    adj_node *var = row(stats, 1);
    if (var == NULL)
        return NULL;
    adj_node *deviation = adj_sqrt(adj_add(var, adj_fill_like(var, epsilon)));
    return adj_div(adj_fill_like(var, 1), deviation);
}

/* x * v along the channels, in x's type. */
static adj_node *times(adj_node *x, adj_node *v, int64_t format)
{
    return adj_mul(x, in_dtype(along(v, x, format), x->type.dtype));
}

/* ---- gradient rules ---- */

/* mean: 1/m; var: 2 (x - mean) / m. In the statistics type: x - mean cancels. */
static void stats_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    const adj_format_attrs *a = y->attrs;
    adj_node *x = y->in[0], *wide = in_dtype(x, y->type.dtype);
    double m = per_channel(x, a->format);
    adj_node *dmean = adj_scale(row(dy, 0), 1 / m), *dvar = adj_scale(row(dy, 1), 2 / m);
    adj_node *centred = adj_sub(wide, along(row(y, 0), x, a->format));
    adj_node *of_mean = along(dmean, x, a->format);
    adj_node *of_var = adj_mul(centred, along(dvar, x, a->format));

    dx[0] = in_dtype(adj_add(of_var, of_mean), x->type.dtype);
}

/* Through y = xhat * gamma + beta with dgamma and dbeta known: dmean = -gamma*s * dbeta, dvar =
 * -gamma*s^2/2 * dgamma. */
static adj_node *to_stats(adj_node *gamma, adj_node *s, adj_node *dgamma, adj_node *dbeta)
{
    adj_node *k = adj_mul(gamma, s);
    adj_node *dvar = adj_scale(adj_mul(adj_mul(k, s), dgamma), -0.5);
    return two_rows(adj_neg(adj_mul(k, dbeta)), dvar);
}

static void norm_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    const adj_batch_norm_attrs *a = y->attrs;
    adj_node *x = y->in[0], *stats = y->in[1], *gamma = y->in[2];
    adj_node *sums = adj_batch_norm_grad_sums(x, stats, dy, a->epsilon, (adj_format)a->format);
    const adj_format_attrs *of = stats->attrs;
    int training =
        stats->op == &adj_op_batch_norm_stats && stats->in[0] == x && of->format == a->format;

    dx[2] = row(sums, 0);
    dx[3] = row(sums, 1);
    if (training) {
        dx[0] = adj_batch_norm_grad(x, stats, gamma, dy, sums, a->epsilon, (adj_format)a->format);
        dx[1] = NULL;
        return;
    }
    adj_node *s = inverse_deviation(stats, a->epsilon);
    dx[0] = times(dy, adj_mul(gamma, s), a->format);
    dx[1] = to_stats(gamma, s, dx[2], dx[3]);
}

/* The sums are linear in dy: their adjoint is a batch norm with the incoming rows as gamma, beta.
 */
static void sums_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    const adj_batch_norm_attrs *a = y->attrs;
    adj_node *x = y->in[0], *stats = y->in[1], *e = row(dy, 0);
    adj_node *s = inverse_deviation(stats, a->epsilon);

    dx[0] = times(y->in[2], adj_mul(e, s), a->format);
    adj_node *dbeta = row(y, 1), *dgamma = row(y, 0);
    dx[1] = to_stats(e, s, dgamma, dbeta);
    dx[2] = adj_batch_norm(x, stats, e, row(dy, 1), a->epsilon, (adj_format)a->format);
}

/* sum(a * b) per channel, in the statistics type. */
static adj_node *dot(adj_node *a, adj_node *b, int64_t format)
{
    adj_dtype dtype = stats_dtype(a->type.dtype);
    adj_axes others = {0};
    for (int i = 0; i < a->type.shape.rank; i++)
        if (i != channel_axis(a, format))
            others.axis[others.n++] = i;
    adj_node *second = in_dtype(b, dtype);
    return adj_reduce_sum(adj_mul(in_dtype(a, dtype), second), others);
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
    adj_node *e0 = row(esums, 0), *e1 = row(esums, 1);
    adj_node *q0 = adj_scale(row(y->in[4], 0), 1 / m), *q1 = adj_scale(row(y->in[4], 1), 1 / m);
    adj_node *kq0s = adj_mul(adj_mul(k, q0), s), *q0e0 = adj_mul(q0, e0);
    adj_node *q1e1 = adj_mul(q1, e1);
    adj_node *r = adj_sub(adj_sub(dot(e, dy, a->format), q1e1), q0e0);
    adj_node *rest = adj_sub(r, q0e0), *dvar = adj_mul(adj_mul(k, adj_square(s)), rest);
    adj_node *minus_k_m = adj_scale(k, -1 / m);

    dx[0] = times(e, adj_neg(kq0s), a->format);
    dvar = adj_scale(dvar, -0.5);
    dx[1] = two_rows(adj_mul(kq0s, e1), dvar);
    dx[2] = adj_mul(s, r);
    dx[3] = times(e, k, a->format);
    adj_node *second = adj_mul(minus_k_m, e1);
    dx[4] = two_rows(adj_mul(minus_k_m, e0), second);
}

/* ---- builders ---- */

/* 0 after recording an error. */
static int format_check(adj_node *x, const char *op, adj_format format)
{
    if (format == ADJ_NHWC || format == ADJ_NCHW)
        return 1;
    adj_fail(x->graph, ADJ_EARG, "%s: data_format is unknown (got %d, expected NHWC or NCHW)", op,
             (int)format);
    return 0;
}

static adj_node *with_epsilon(const adj_op *op, int n, adj_node *const in[], double epsilon,
                              adj_format format)
{
    const adj_batch_norm_attrs a = {.epsilon = epsilon, .format = format};

    if (in[0] == NULL || !format_check(in[0], op->name, format))
        return NULL;
    if (!(epsilon >= 0 && isfinite(epsilon))) {
        adj_fail(in[0]->graph, ADJ_EARG, "%s: epsilon is out of range (got %g, expected >= 0)",
                 op->name, epsilon);
        return NULL;
    }
    return adj_node_new(in[0]->graph, op, n, in, &a);
}

adj_node *adj_batch_norm_stats(adj_node *x, adj_format format)
{
    const adj_format_attrs a = {.format = format};

    if (x == NULL || !format_check(x, "batch_norm_stats", format))
        return NULL;
    return adj_node_new1(&adj_op_batch_norm_stats, x, &a);
}

adj_node *adj_batch_norm(adj_node *x, adj_node *stats, adj_node *gamma, adj_node *beta,
                         double epsilon, adj_format format)
{
    adj_node *const in[] = {x, stats, gamma, beta};
    return with_epsilon(&adj_op_batch_norm, 4, in, epsilon, format);
}

adj_node *adj_batch_norm_grad_sums(adj_node *x, adj_node *stats, adj_node *dy, double epsilon,
                                   adj_format format)
{
    adj_node *const in[] = {x, stats, dy};
    return with_epsilon(&adj_op_batch_norm_grad_sums, 3, in, epsilon, format);
}

adj_node *adj_batch_norm_grad(adj_node *x, adj_node *stats, adj_node *gamma, adj_node *dy,
                              adj_node *sums, double epsilon, adj_format format)
{
    adj_node *const in[] = {x, stats, gamma, dy, sums};
    return with_epsilon(&adj_op_batch_norm_grad, 5, in, epsilon, format);
}

static void stats_show(const void *attrs, FILE *f)
{
    const adj_format_attrs *a = attrs;
    if (a->format == ADJ_NCHW)
        fprintf(f, " NCHW");
}

static void norm_show(const void *attrs, FILE *f)
{
    const adj_batch_norm_attrs *a = attrs;
    fprintf(f, " epsilon %g%s", a->epsilon, a->format == ADJ_NCHW ? " NCHW" : "");
}

/* A variance is positive; a mean may be. */
static void stats_domain(const adj_node *n, int i, int64_t count, double v[])
{
    (void)n;
    if (i == 1)
        adj_spread(count, v, 0.5, 2);
}

static int set_format(void *attrs, adj_format format)
{
    adj_batch_norm_attrs *a = attrs;
    int other = a->format != (int64_t)format;
    a->format = (int64_t)format;
    return other;
}

const adj_op adj_op_batch_norm_stats = {.name = "batch_norm_stats",
                                        .min_in = 1,
                                        .max_in = 1,
                                        .flags = ADJ_OP_HALF,
                                        .half_in = 1,
                                        .attr_size = sizeof(adj_format_attrs),
                                        .infer = stats_infer,
                                        .grad = stats_grad,
                                        .show = stats_show,
                                        .operand = {"x"},
                                        .images = 1,
                                        .set_format = format_set};
const adj_op adj_op_batch_norm = {.name = "batch_norm",
                                  .min_in = 4,
                                  .max_in = 4,
                                  .flags = ADJ_OP_HALF | ADJ_OP_CHEAP,
                                  .half_in = 1,
                                  .attr_size = sizeof(adj_batch_norm_attrs),
                                  .infer = norm_infer,
                                  .grad = norm_grad,
                                  .fold = batch_norm_fold,
                                  .show = norm_show,
                                  .domain = stats_domain,
                                  .operand = {"x", "stats", "gamma", "beta"},
                                  .images = 1 | ADJ_IMAGE_RESULT,
                                  .set_format = set_format};
const adj_op adj_op_batch_norm_grad_sums = {.name = "batch_norm_grad_sums",
                                            .min_in = 3,
                                            .max_in = 3,
                                            .flags = ADJ_OP_HALF,
                                            .half_in = 1 | 4,
                                            .attr_size = sizeof(adj_batch_norm_attrs),
                                            .linear_in = 1u << 2,
                                            .infer = sums_infer,
                                            .grad = sums_grad,
                                            .save_for_backward = batch_norm_mask_again,
                                            .show = norm_show,
                                            .domain = stats_domain,
                                            .operand = {"x", "stats", "dy"},
                                            .images = 1 | 4,
                                            .set_format = set_format};
const adj_op adj_op_batch_norm_grad = {.name = "batch_norm_grad",
                                       .min_in = 5,
                                       .max_in = 5,
                                       .flags = ADJ_OP_HALF,
                                       .sum_in = 8 | 16,
                                       .half_in = 1 | 8,
                                       .attr_size = sizeof(adj_batch_norm_attrs),
                                       .infer = grad_infer,
                                       .grad = grad_grad,
                                       .save_for_backward = batch_norm_mask_again,
                                       .show = norm_show,
                                       .domain = stats_domain,
                                       .operand = {"x", "stats", "gamma", "dy", "sums"},
                                       .images = 1 | 8 | ADJ_IMAGE_RESULT,
                                       .cancels_in = 8 | 16,
                                       .set_format = set_format};
