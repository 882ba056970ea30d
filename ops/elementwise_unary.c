/* elementwise_unary.c - neg, scale, square, sqrt, exp, log.
 *
 * Gradients, in terms of the result where possible:
 *   neg -dy    scale factor dy    square 2 x dy    sqrt dy / (2 y)    exp dy y    log dy / x */
#include "graph/op.h"

static void neg_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    (void)y;
    dx[0] = adj_neg(dy);
}

static double factor_of(const adj_node *n) { return ((const adj_value_attrs *)n->attrs)->value; }

static const adj_schema scale_schema = {
    .size = sizeof(adj_value_attrs),
    .attr = {{"factor", ADJ_ATTR_REAL, .offset = offsetof(adj_value_attrs, value), " x",
              .fallback = 0.3}}};

static void scale_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    dx[0] = adj_scale(dy, factor_of(y));
}

/* True if dtype represents the number exactly. */
static int representable(adj_dtype dtype, double value)
{
    double element;
    adj_store(dtype, &element, 0, value);
    return adj_load(dtype, &element, 0) == value;
}

/* A scaled fill becomes a fill if neither value nor product is rounded. */
static adj_node *scale_simplify(const adj_node *n, adj_node *const in[])
{
    adj_dtype dtype = in[0]->type.dtype;
    double factor = factor_of(n), value;

    if (factor == 1)
        return in[0];
    if (adj_is_fill(in[0], &value) && representable(dtype, value) &&
        representable(dtype, value * factor))
        return adj_fill_like(in[0], value * factor);
    return NULL;
}

static void square_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    dx[0] = adj_mul(dy, adj_scale(y->in[0], 2));
}

static void sqrt_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    dx[0] = adj_div(adj_scale(dy, 0.5), y);
}

static void exp_grad(adj_node *y, adj_node *dy, adj_node *dx[]) { dx[0] = adj_mul(dy, y); }

static void log_grad(adj_node *y, adj_node *dy, adj_node *dx[]) { dx[0] = adj_div(dy, y->in[0]); }

/* Draws positive numbers away from 0, for log and sqrt. */
static void positive_domain(const adj_node *n, int i, int64_t count, double v[])
{
    (void)n, (void)i;
    adj_spread(count, v, 0.5, 2);
}

const adj_op adj_op_neg = {.name = "neg",
                           .n_in = 1,
                           .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_HALF,
                           .linear_in = ADJ_IN(0),
                           .grad = neg_grad};
const adj_op adj_op_scale = {.name = "scale",
                             .n_in = 1,
                             .schema = &scale_schema,
                             .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_HALF,
                             .linear_in = ADJ_IN(0),
                             .grad = scale_grad,
                             .simplify = scale_simplify};
const adj_op adj_op_square = {
    .name = "square", .n_in = 1, .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_HALF, .grad = square_grad};
const adj_op adj_op_sqrt = {.name = "sqrt",
                            .n_in = 1,
                            .flags = ADJ_OP_ELEMENTWISE,
                            .grad = sqrt_grad,
                            .domain = positive_domain};
const adj_op adj_op_exp = {.name = "exp", .n_in = 1, .flags = ADJ_OP_ELEMENTWISE, .grad = exp_grad};
const adj_op adj_op_log = {.name = "log",
                           .n_in = 1,
                           .flags = ADJ_OP_ELEMENTWISE,
                           .grad = log_grad,
                           .domain = positive_domain};

adj_node *adj_neg(adj_node *x) { return adj_node_new1(&adj_op_neg, x, NULL); }

adj_node *adj_scale(adj_node *x, double factor)
{
    return adj_node_new1(&adj_op_scale, x, &(adj_value_attrs){.value = factor});
}

adj_node *adj_abs(adj_node *x)
{
    adj_node *above = adj_relu(x), *below = adj_relu(adj_neg(x));
    return adj_add(above, below);
}

adj_node *adj_square(adj_node *x) { return adj_node_new1(&adj_op_square, x, NULL); }
adj_node *adj_sqrt(adj_node *x) { return adj_node_new1(&adj_op_sqrt, x, NULL); }
adj_node *adj_exp(adj_node *x) { return adj_node_new1(&adj_op_exp, x, NULL); }
adj_node *adj_log(adj_node *x) { return adj_node_new1(&adj_op_log, x, NULL); }
