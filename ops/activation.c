/* activation.c - relu, relu6, leaky_relu, sigmoid, tanh, silu, and their gradients as ops of
 * their own. A gradient reads the result instead of the operand where that is enough: the
 * operand then needs no memory until the backward pass, and relu can be fused with the
 * convolution before it.
 *
 *   relu_grad(dy, y)        dy where y > 0, else 0
 *   relu6_grad(dy, y)       dy where 0 < y < 6, else 0
 *   leaky_relu_grad(dy, y)  dy where y > 0, else alpha dy
 *   sigmoid_grad(dy, y)     dy y (1 - y)
 *   tanh_grad(dy, y)        dy (1 - y^2)
 *   silu_grad(dy, x)        dy (s + x s (1 - s)),  s = sigmoid(x)
 * Each is linear in dy, so for the incoming gradient e, the gradient of dy is the same op on e.
 * The second operand's gradient is zero almost everywhere for the first three; the rules below
 * give the others. */
#include "activation.h"
#include "grad.h"
#include "ops/rules/max_pool.h"

const adj_schema alpha_schema = {
    .size = sizeof(adj_value_attrs),
    .attr = {{"alpha", ADJ_ATTR_REAL, .offset = offsetof(adj_value_attrs, value),
              " alpha=", .fallback = 0.25}}};

static double alpha_of(const adj_node *n) { return ((const adj_value_attrs *)n->attrs)->value; }

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

static void sigmoid_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    dx[0] = adj_sigmoid_grad(dy, y);
}

static void tanh_grad(adj_node *y, adj_node *dy, adj_node *dx[]) { dx[0] = adj_tanh_grad(dy, y); }

static void silu_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    dx[0] = adj_silu_grad(dy, y->in[0]);
}

void steps_grad(adj_node *dx, adj_node *e, adj_node *de[])
{
    de[0] = adj_node_new2(dx->op, e, dx->in[1], dx->attrs);
    de[1] = NULL;
}

/* 1 - 2 y */
static adj_node *one_minus_twice(adj_node *y)
{
    adj_node *twice = adj_scale(y, 2);
    return y != NULL ? adj_sub(adj_fill_like(y, 1), twice) : NULL;
}

/* d/dy of dy y (1 - y) is dy (1 - 2 y). */
static void sigmoid_grad_grad(adj_node *dx, adj_node *e, adj_node *de[])
{
    adj_node *dy = dx->in[0], *y = dx->in[1];

    de[0] = adj_sigmoid_grad(e, y);
    adj_node *slope = one_minus_twice(y);
    de[1] = adj_mul(adj_mul(e, dy), slope);
}

/* d/dy of dy (1 - y^2) is -2 dy y. */
static void tanh_grad_grad(adj_node *dx, adj_node *e, adj_node *de[])
{
    adj_node *dy = dx->in[0], *y = dx->in[1];

    de[0] = adj_tanh_grad(e, y);
    adj_node *slope = adj_scale(y, -2);
    de[1] = adj_mul(adj_mul(e, dy), slope);
}

/* d/dx of s + x s (1 - s) is s (1 - s) (2 + x (1 - 2 s)). */
static void silu_grad_grad(adj_node *dx, adj_node *e, adj_node *de[])
{
    adj_node *dy = dx->in[0], *x = dx->in[1], *s = adj_sigmoid(x);
    adj_node *product = adj_mul(x, one_minus_twice(s)),
             *bend = adj_add(adj_fill_like(x, 2), product);

    de[0] = adj_silu_grad(e, x);
    de[1] = adj_sigmoid_grad(adj_mul(adj_mul(e, dy), bend), s);
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

const adj_op adj_op_sigmoid = {.name = "sigmoid", .n_in = 1, .flags = CURVED, .grad = sigmoid_grad};
const adj_op adj_op_sigmoid_grad = {.name = "sigmoid_grad",
                                    .n_in = 2,
                                    .flags = CURVED,
                                    .linear_in = ADJ_IN(0),
                                    .grad = sigmoid_grad_grad,
                                    .operand = {"dy", "y"}};

const adj_op adj_op_tanh = {.name = "tanh", .n_in = 1, .flags = CURVED, .grad = tanh_grad};
const adj_op adj_op_tanh_grad = {.name = "tanh_grad",
                                 .n_in = 2,
                                 .flags = CURVED,
                                 .linear_in = ADJ_IN(0),
                                 .grad = tanh_grad_grad,
                                 .operand = {"dy", "y"}};

const adj_op adj_op_silu = {.name = "silu", .n_in = 1, .flags = CURVED, .grad = silu_grad};
const adj_op adj_op_silu_grad = {.name = "silu_grad",
                                 .n_in = 2,
                                 .flags = CURVED,
                                 .linear_in = ADJ_IN(0),
                                 .grad = silu_grad_grad,
                                 .operand = {"dy", "x"}};

adj_node *adj_relu(adj_node *x) { return adj_node_new1(&adj_op_relu, x, NULL); }
adj_node *adj_relu6(adj_node *x) { return adj_node_new1(&adj_op_relu6, x, NULL); }
adj_node *adj_sigmoid(adj_node *x) { return adj_node_new1(&adj_op_sigmoid, x, NULL); }
adj_node *adj_tanh(adj_node *x) { return adj_node_new1(&adj_op_tanh, x, NULL); }
adj_node *adj_silu(adj_node *x) { return adj_node_new1(&adj_op_silu, x, NULL); }

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

adj_node *adj_sigmoid_grad(adj_node *dy, adj_node *y)
{
    return adj_node_new2(&adj_op_sigmoid_grad, dy, y, NULL);
}

adj_node *adj_tanh_grad(adj_node *dy, adj_node *y)
{
    return adj_node_new2(&adj_op_tanh_grad, dy, y, NULL);
}

adj_node *adj_silu_grad(adj_node *dy, adj_node *x)
{
    return adj_node_new2(&adj_op_silu_grad, dy, x, NULL);
}
