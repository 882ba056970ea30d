/* group_norm.c - group normalization: each image's channels in groups, as torch.nn.GroupNorm; and
 * layer normalization, composed of it.
 *
 * Over the m elements of a group (consecutive channels of one image), with the biased variance,
 * s = 1 / sqrt(var + epsilon) and xhat = (x - mean) * s:
 *   y    = group_norm(x, gamma, beta)        xhat * gamma + beta, gamma and beta by channel
 *   sums = group_norm_grad_sums(x, dy)       sum(dy * xhat) and sum(dy) by channel: [2, c]
 *   dx   = group_norm_grad(x, gamma, dy)     s * (w - mean(w) - xhat * mean(w * xhat))
 *
 * where w = gamma * dy. sums is dgamma and dbeta. Gamma, beta and sums have the statistics type
 * (channel.h).
 *
 * Each op recomputes the statistics from x, which is in the cache then. No statistics are
 * operands, so the gradient rules are whole derivatives. With J the derivative of xhat by x,
 * which is symmetric, group_norm_grad(x, gamma, dy) = J(gamma * dy). */
#include <float.h>

#include "channel.h"
#include "grad.h"

static adj_status infer(const adj_node *n, void *attrs, adj_type *out)
{
    const adj_group_norm_attrs *a = attrs;
    adj_status status = channel_infer(n, attrs, out);
    if (status != ADJ_OK)
        return status;
    int64_t c = channels_of(n->in[0], a->format);
    if (a->groups >= 1 && c % a->groups == 0)
        return ADJ_OK;
    return adj_fail(
        n->graph, ADJ_EARG,
        "%s: groups is out of range (got %lld, expected a divisor of the %lld channels)",
        n->op->name, (long long)a->groups, (long long)c);
}

/* ---- gradient rules ---- */

static adj_node *same_groups(adj_node *x, adj_node *a, adj_node *b, const adj_group_norm_attrs *of,
                             adj_node *(*build)(adj_node *, adj_node *, adj_node *, int64_t, double,
                                                adj_format))
{
    return build(x, a, b, of->groups, of->epsilon, (adj_format)of->format);
}

static void norm_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    const adj_group_norm_attrs *a = y->attrs;
    adj_node *x = y->in[0];
    adj_node *sums = adj_group_norm_grad_sums(x, dy, a->groups, a->epsilon, (adj_format)a->format);
    dx[0] = same_groups(x, y->in[1], dy, a, adj_group_norm_grad);
    dx[1] = adj_stats_row(sums, 0);
    dx[2] = adj_stats_row(sums, 1);
}

/* <e, sums> = <dy, group_norm(x, e0, e1)> for the rows e0 and e1 of e. */
static void sums_grad(adj_node *sums, adj_node *e, adj_node *dx[])
{
    const adj_group_norm_attrs *a = sums->attrs;
    adj_node *x = sums->in[0], *dy = sums->in[1], *e0 = adj_stats_row(e, 0),
             *e1 = adj_stats_row(e, 1);
    dx[0] = same_groups(x, e0, dy, a, adj_group_norm_grad);
    dx[1] = same_groups(x, e0, e1, a, adj_group_norm);
}

/* x with a separate axis for the groups and the other axes merged: [n, pixels, groups, rest] or
 * [n, groups, rest, pixels]. */
typedef struct {
    adj_shape shape;
    adj_axes within; /* the axes of one group */
    double m;        /* elements of one group, at least 1 */
} grouped;

static grouped grouped_of(const adj_node *x, const adj_group_norm_attrs *a)
{
    const adj_shape s = x->type.shape;
    int64_t c = channels_of(x, a->format), rest = c / a->groups, pixels = 1;
    int channel = channel_axis(s, a->format);
    for (int i = 1; i < s.rank; i++)
        pixels *= i != channel ? s.dim[i] : 1;
    grouped v = {{4, {s.dim[0], pixels, a->groups, rest}}, {2, {1, 3}, 1}, (double)(pixels * rest)};
    if (a->format == ADJ_NCHW)
        v = (grouped){{4, {s.dim[0], a->groups, rest, pixels}}, {2, {2, 3}, 1}, v.m};
    v.m = v.m > 1 ? v.m : 1;
    return v;
}

/* Returns sum(a * b) over each group, broadcast to a's shape. */
static adj_node *group_dot(const grouped *v, adj_node *a, adj_node *b)
{
    return adj_reduce_sum(adj_mul(a, b), v->within);
}

/* Gradients of dx = J w, w = gamma * dy, for the incoming e, with J e = group_norm_grad(x, 1,
 * e):
 *   dy: gamma * J e      gamma: sum(dy * J e) by channel
 *   x:  the derivative of <e, J w> = s (<e, w> - <e, 1><w, 1> / m - <e, xhat><w, xhat> / m), as s
 *       has -s^2 xhat / m and <w, xhat> has J w:
 *       -s/m (xhat <e, J w> + J e <w, xhat> + J w <e, xhat>)
 * with the sums over a group; all in the statistics type, since x - mean cancels. */
static void grad_grad(adj_node *y, adj_node *incoming, adj_node *dx[])
{
    const adj_group_norm_attrs *a = y->attrs;
    const adj_dtype dtype = y->type.dtype, stats = adj_stats_dtype(dtype);
    const grouped v = grouped_of(y, a);
    adj_node *gamma = y->in[1], *one = adj_fill_like(gamma, 1);
    adj_node *x = adj_in_dtype(y->in[0], stats), *dy = adj_in_dtype(y->in[2], stats);
    adj_node *e = adj_in_dtype(incoming, stats);
    adj_node *je = same_groups(x, one, e, a, adj_group_norm_grad);
    adj_node *jw = same_groups(x, gamma, dy, a, adj_group_norm_grad);
    dx[1] = norm_dot(dy, je, a->format);
    dx[2] = adj_in_dtype(norm_times(je, gamma, a->format), dtype);

    adj_node *w = adj_reshape(norm_times(dy, gamma, a->format), v.shape);
    x = adj_reshape(x, v.shape);
    e = adj_reshape(e, v.shape);
    je = adj_reshape(je, v.shape);
    jw = adj_reshape(jw, v.shape);
    adj_node *centerd = adj_sub(x, adj_scale(adj_reduce_sum(x, v.within), 1 / v.m));
    adj_node *var = adj_scale(group_dot(&v, centerd, centerd), 1 / v.m);
    adj_node *deviation = adj_sqrt(adj_add(var, adj_fill_like(var, a->epsilon)));
    adj_node *xhat = adj_div(centerd, deviation);
    adj_node *of_s = adj_mul(xhat, group_dot(&v, e, jw));
    adj_node *of_w = adj_mul(je, group_dot(&v, w, xhat));
    adj_node *of_e = adj_mul(jw, group_dot(&v, e, xhat));
    adj_node *sum = adj_add(adj_add(of_s, of_w), of_e);
    sum = adj_scale(adj_div(sum, deviation), -1 / v.m);
    dx[0] = adj_in_dtype(adj_reshape(sum, y->type.shape), dtype);
}

/* ---- builders ---- */

static adj_node *build(const adj_op *op, adj_node *const in[], int64_t groups, double epsilon,
                       adj_format format)
{
    const adj_group_norm_attrs a = {.epsilon = epsilon, .groups = groups, .format = format};
    return in[0] != NULL ? adj_node_new(in[0]->graph, op, op->n_in, in, &a) : NULL;
}

adj_node *adj_group_norm(adj_node *x, adj_node *gamma, adj_node *beta, int64_t groups,
                         double epsilon, adj_format format)
{
    adj_node *const in[] = {x, gamma, beta};
    return build(&adj_op_group_norm, in, groups, epsilon, format);
}

adj_node *adj_group_norm_grad_sums(adj_node *x, adj_node *dy, int64_t groups, double epsilon,
                                   adj_format format)
{
    adj_node *const in[] = {x, dy};
    return build(&adj_op_group_norm_grad_sums, in, groups, epsilon, format);
}

adj_node *adj_group_norm_grad(adj_node *x, adj_node *gamma, adj_node *dy, int64_t groups,
                              double epsilon, adj_format format)
{
    adj_node *const in[] = {x, gamma, dy};
    return build(&adj_op_group_norm_grad, in, groups, epsilon, format);
}

/* ---- facts ---- */

static const adj_schema schema = {
    .size = sizeof(adj_group_norm_attrs),
    .attr = {{"epsilon", ADJ_ATTR_REAL, .offset = offsetof(adj_group_norm_attrs, epsilon),
              " epsilon ", ">= 0", 0, DBL_MAX, .fallback = 1e-3},
             {"groups", ADJ_ATTR_INT, .offset = offsetof(adj_group_norm_attrs, groups), " groups ",
              .fallback = 1},
             {"data_format", ADJ_ATTR_FORMAT, .offset = offsetof(adj_group_norm_attrs, format)}}};

/* Returns the elements of a group, over which statistics sum; for grad_sums, those of a channel
 * as well. */
static double sum_length(const adj_node *n)
{
    const adj_group_norm_attrs *a = n->attrs;
    return grouped_of(n->in[0], a).m;
}

const adj_op adj_op_group_norm = {
    .name = "group_norm",
    .n_in = 3,
    .flags = ADJ_OP_HALF | ADJ_OP_HALF_IMAGES | ADJ_OP_CHEAP,
    .schema = &schema,
    .infer = infer,
    .grad = norm_grad,
    .operand = {"x", "gamma", "beta"},
    .example = {ADJ_EXAMPLE_X, ADJ_EXAMPLE_STATISTIC, ADJ_EXAMPLE_STATISTIC},
    .images = ADJ_IN(0) | ADJ_IMAGE_RESULT,
    .cancels_in = ADJ_IN(1) | ADJ_IN(2),
    .sum_length = sum_length};
const adj_op adj_op_group_norm_grad_sums = {.name = "group_norm_grad_sums",
                                            .n_in = 2,
                                            .flags = ADJ_OP_HALF | ADJ_OP_HALF_IMAGES,
                                            .sum_in = ADJ_IN(1),
                                            .schema = &schema,
                                            .infer = infer,
                                            .grad = sums_grad,
                                            .operand = {"x", "dy"},
                                            .example = {ADJ_EXAMPLE_X, ADJ_EXAMPLE_X},
                                            .images = ADJ_IN(0) | ADJ_IN(1),
                                            .cancels_in = ADJ_IN(1),
                                            .sum_length = sum_length};
const adj_op adj_op_group_norm_grad = {
    .name = "group_norm_grad",
    .n_in = 3,
    .flags = ADJ_OP_HALF | ADJ_OP_HALF_IMAGES,
    .sum_in = ADJ_IN(2),
    .schema = &schema,
    .infer = infer,
    .grad = grad_grad,
    .operand = {"x", "gamma", "dy"},
    .example = {ADJ_EXAMPLE_X, ADJ_EXAMPLE_STATISTIC, ADJ_EXAMPLE_X},
    .images = ADJ_IN(0) | ADJ_IN(2) | ADJ_IMAGE_RESULT,
    .cancels_in = ADJ_IN(1) | ADJ_IN(2),
    .sum_length = sum_length};

/* ---- layer normalization ----
 *
 * As torch.nn.LayerNorm: group norm with one group on x as a matrix, each of whose rows is
 * normalized. The reshapes are views. */

/* True if v has the shape of x's last axes; records an error if not. */
static int is_of_last_axes(const adj_node *x, const adj_node *v, int64_t rank, const char *name)
{
    const adj_shape s = x->type.shape, got = v->type.shape;
    adj_shape want = {.rank = rank};
    for (int64_t i = 0; i < rank; i++)
        want.dim[i] = s.dim[s.rank - rank + i];
    if (adj_shape_equal(got, want))
        return 1;
    adj_fail(x->graph, ADJ_ESHAPE,
             "layer_norm: %s does not have the shape of x's last axes (got %s, expected %s)", name,
             adj_shape_text(got).s, adj_shape_text(want).s);
    return 0;
}

adj_node *adj_layer_norm(adj_node *x, adj_node *gamma, adj_node *beta, double epsilon)
{
    if (x == NULL || gamma == NULL || beta == NULL)
        return NULL;
    const adj_shape s = x->type.shape, g = gamma->type.shape;
    if (g.rank < 1 || g.rank > s.rank) {
        adj_fail(x->graph, ADJ_ESHAPE,
                 "layer_norm: gamma has the wrong rank (got %s, expected rank 1 to %lld, x's)",
                 adj_shape_text(g).s, (long long)s.rank);
        return NULL;
    }
    if (!is_of_last_axes(x, gamma, g.rank, "gamma") || !is_of_last_axes(x, beta, g.rank, "beta"))
        return NULL;
    int64_t rows = 1;
    for (int64_t i = 0; i < s.rank - g.rank; i++)
        rows *= s.dim[i];
    const adj_shape row = {1, {adj_shape_elems(g)}};
    adj_node *matrix = adj_reshape(x, (adj_shape){2, {rows, row.dim[0]}});
    adj_node *scale = adj_reshape(gamma, row), *offset = adj_reshape(beta, row);
    return adj_reshape(adj_group_norm(matrix, scale, offset, 1, epsilon, ADJ_NHWC), s);
}
