/* activation.c - piecewise linear activations: relu, relu6, leaky_relu, clip, and their gradients
 * as ops of their own. A gradient reads the result instead of the operand where that is enough: the
 * operand then needs no memory until the backward pass, and relu can be fused with the convolution
 * before it.
 *
 *   relu_grad(dy, y)        dy where y > 0, else 0
 *   relu6_grad(dy, y)       dy where 0 < y < 6, else 0
 *   leaky_relu_grad(dy, y)  dy where y > 0, else alpha dy
 *   clip_grad(dy, x)        dy where min <= x <= max, else 0
 * Each is linear in dy, so for the upstream gradient e, the gradient of dy is the same op on e. The
 * second operand's gradient is zero almost everywhere.
 *
 * relu's kernels: backends/naive/elementwise.c; backends/direct/fused_pointwise/, row_kernel.c
 * alone and in frequent groups of f32 and bf16, else loops.c; behind a product
 * backends/direct/element.h. */
#include <math.h>

#include "activation.h"
#include "grad.h"
#include "ops/rules/rules.h"

const adj_schema alpha_schema = {
    .size = sizeof(adj_value_attrs),
    .attr = {{"alpha", ADJ_ATTR_REAL, .offset = offsetof(adj_value_attrs, value),
              " alpha=", .fallback = 0.25}}};

void keep_from_zero(int64_t count, double v[])
{
    for (int64_t k = 0; k < count; k++)
        v[k] += v[k] < 0 ? -0.125 : 0.125;
}

/* Covers both of relu6's kinks. */
static void relu6_domain(const adj_node *n, int i, int64_t count, double v[])
{
    (void)n, (void)i;
    adj_spread(count, v, -4, 10);
}

/* ---- gradient rules ---- */

static void relu_grad(adj_node *y, adj_node *dy, adj_node *dx[]) { dx[0] = adj_relu_grad(dy, y); }

static void relu6_grad(adj_node *y, adj_node *dy, adj_node *dx[]) { dx[0] = adj_relu6_grad(dy, y); }

/* y has the sign of x unless alpha is negative. */
static void leaky_relu_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    dx[0] = adj_leaky_relu_grad(dy, alpha_of(y) < 0 ? y->in[0] : y, alpha_of(y));
}

void steps_grad(adj_node *dx, adj_node *e, adj_node *de[])
{
    de[0] = adj_node_new2(dx->op, e, dx->in[1], dx->attrs);
    de[1] = NULL;
}

/* ---- the ops ---- */

const adj_op adj_op_relu = {
    .name = "relu", .n_in = 1, .flags = STRAIGHT | ADJ_OP_CHEAP, .grad = relu_grad};
const adj_op adj_op_relu_grad = {.name = "relu_grad",
                                 .n_in = 2,
                                 .flags = STRAIGHT,
                                 .linear_in = ADJ_IN(0),
                                 .grad = steps_grad,
                                 .rewrite_with_users = relu_grad_rewrite_with_users,
                                 .operand = {"dy", "y"}};

const adj_op adj_op_relu6 = {.name = "relu6",
                             .n_in = 1,
                             .flags = STRAIGHT | ADJ_OP_CHEAP,
                             .grad = relu6_grad,
                             .domain = relu6_domain};
const adj_op adj_op_relu6_grad = {.name = "relu6_grad",
                                  .n_in = 2,
                                  .flags = STRAIGHT,
                                  .linear_in = ADJ_IN(0),
                                  .grad = steps_grad,
                                  .operand = {"dy", "y"}};

const adj_op adj_op_leaky_relu = {.name = "leaky_relu",
                                  .n_in = 1,
                                  .schema = &alpha_schema,
                                  .flags = STRAIGHT | ADJ_OP_CHEAP,
                                  .grad = leaky_relu_grad};
const adj_op adj_op_leaky_relu_grad = {.name = "leaky_relu_grad",
                                       .n_in = 2,
                                       .schema = &alpha_schema,
                                       .flags = STRAIGHT,
                                       .linear_in = ADJ_IN(0),
                                       .grad = steps_grad,
                                       .operand = {"dy", "y"}};

adj_node *adj_relu(adj_node *x) { return adj_node_new1(&adj_op_relu, x, NULL); }
adj_node *adj_relu6(adj_node *x) { return adj_node_new1(&adj_op_relu6, x, NULL); }

adj_node *adj_leaky_relu(adj_node *x, double alpha)
{
    return adj_node_new1(&adj_op_leaky_relu, x, &(adj_value_attrs){alpha});
}

adj_node *adj_relu_grad(adj_node *dy, adj_node *y)
{
    return adj_node_new2(&adj_op_relu_grad, dy, y, NULL);
}

adj_node *adj_relu6_grad(adj_node *dy, adj_node *y)
{
    return adj_node_new2(&adj_op_relu6_grad, dy, y, NULL);
}

adj_node *adj_leaky_relu_grad(adj_node *dy, adj_node *y, double alpha)
{
    return adj_node_new2(&adj_op_leaky_relu_grad, dy, y, &(adj_value_attrs){alpha});
}

/* ---- clip ----
 *
 * min(max(x, min), max), as ONNX's Clip and PyTorch's clamp. Like these it gives max everywhere if
 * min is larger than max. x is compared with the given bounds, not with the bounds rounded to x's
 * type: every type clips the same elements, and only the result is rounded. */

static const char any[] = "a number or an infinity";

static const adj_schema clip_schema = {
    .size = sizeof(adj_clip_attrs),
    .attr = {{"min", ADJ_ATTR_REAL, .offset = offsetof(adj_clip_attrs, min), " min=", any,
              -INFINITY, INFINITY, .fallback = -0.5},
             {"max", ADJ_ATTR_REAL, .offset = offsetof(adj_clip_attrs, max), " max=", any,
              -INFINITY, INFINITY, .fallback = 0.75}}};

static void clip_rule(adj_node *y, adj_node *dy, adj_node *dx[])
{
    const adj_clip_attrs *a = y->attrs;
    dx[0] = adj_clip_grad(dy, y->in[0], a->min, a->max);
}

/* Draws values on both sides of each bound, unless the bound is far from 0. */
static void clip_domain(const adj_node *n, int i, int64_t count, double v[])
{
    const adj_clip_attrs *a = n->attrs;
    if (i == n->n_in - 1)
        adj_spread(count, v, fmin(fmax(a->min, -8), 8) - 1, fmin(fmax(a->max, -8), 8) + 1);
}

const adj_op adj_op_clip = {.name = "clip",
                            .n_in = 1,
                            .schema = &clip_schema,
                            .flags = STRAIGHT | ADJ_OP_CHEAP,
                            .grad = clip_rule,
                            .domain = clip_domain};
const adj_op adj_op_clip_grad = {.name = "clip_grad",
                                 .n_in = 2,
                                 .schema = &clip_schema,
                                 .flags = STRAIGHT,
                                 .linear_in = ADJ_IN(0),
                                 .grad = steps_grad,
                                 .operand = {"dy", "x"},
                                 .domain = clip_domain};

adj_node *adj_clip(adj_node *x, double min, double max)
{
    return adj_node_new1(&adj_op_clip, x, &(adj_clip_attrs){min, max});
}

adj_node *adj_clip_grad(adj_node *dy, adj_node *x, double min, double max)
{
    return adj_node_new2(&adj_op_clip_grad, dy, x, &(adj_clip_attrs){min, max});
}
