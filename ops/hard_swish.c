/* hard_swish.c - hard_sigmoid, min(max(x + 3, 0), 6) / 6, as PyTorch's Hardsigmoid (ONNX's with
 * alpha 1/6), and hard_swish, x hard_sigmoid(x), as PyTorch's Hardswish and ONNX's HardSwish;
 * and their gradients as ops:
 *   hard_sigmoid_grad(dy, x)  dy / 6 where -3 < x < 3, else 0
 *   hard_swish_grad(dy, x)    dy (x / 3 + 1/2) where -3 < x < 3; above dy, below 0
 * All but hard_sigmoid_grad are not marked ADJ_OP_KINKS, because between the kinks they are
 * curved, or add rounded terms instead of selecting. */
#include <math.h>

#include "activation.h"
#include "grad.h"

static void hard_sigmoid_rule(adj_node *y, adj_node *dy, adj_node *dx[])
{
    dx[0] = adj_hard_sigmoid_grad(dy, y->in[0]);
}

static void hard_swish_rule(adj_node *y, adj_node *dy, adj_node *dx[])
{
    dx[0] = adj_hard_swish_grad(dy, y->in[0]);
}

/* d/dx of dy (x / 3 + 1/2) is dy / 3, which is twice hard_sigmoid's gradient. */
static void hard_swish_grad_rule(adj_node *dx, adj_node *e, adj_node *de[])
{
    adj_node *dy = dx->in[0], *x = dx->in[1];
    de[0] = adj_hard_swish_grad(e, x);
    adj_node *product = adj_scale(adj_mul(e, dy), 2);
    de[1] = adj_hard_sigmoid_grad(product, x);
}

/* Draws x on both sides of the kinks at -3 and 3, but never near one. */
static void domain(const adj_node *n, int i, int64_t count, double v[])
{
    if (i != n->n_in - 1)
        return;
    adj_spread(count, v, -6, 6);
    for (int64_t k = 0; k < count; k++)
        if (fabs(fabs(v[k]) - 3) < 0.125)
            v[k] += 0.5;
}

const adj_op adj_op_hard_sigmoid = {.name = "hard_sigmoid",
                                    .n_in = 1,
                                    .flags = CURVED | ADJ_OP_CHEAP,
                                    .grad = hard_sigmoid_rule,
                                    .domain = domain};
const adj_op adj_op_hard_sigmoid_grad = {.name = "hard_sigmoid_grad",
                                         .n_in = 2,
                                         .flags = STRAIGHT,
                                         .linear_in = ADJ_IN(0),
                                         .grad = steps_grad,
                                         .operand = {"dy", "x"},
                                         .domain = domain};
const adj_op adj_op_hard_swish = {.name = "hard_swish",
                                  .n_in = 1,
                                  .flags = CURVED | ADJ_OP_CHEAP,
                                  .grad = hard_swish_rule,
                                  .domain = domain};
const adj_op adj_op_hard_swish_grad = {.name = "hard_swish_grad",
                                       .n_in = 2,
                                       .flags = CURVED,
                                       .linear_in = ADJ_IN(0),
                                       .grad = hard_swish_grad_rule,
                                       .operand = {"dy", "x"},
                                       .domain = domain};

adj_node *adj_hard_sigmoid(adj_node *x) { return adj_node_new1(&adj_op_hard_sigmoid, x, NULL); }
adj_node *adj_hard_swish(adj_node *x) { return adj_node_new1(&adj_op_hard_swish, x, NULL); }

adj_node *adj_hard_sigmoid_grad(adj_node *dy, adj_node *x)
{
    return adj_node_new2(&adj_op_hard_sigmoid_grad, dy, x, NULL);
}

adj_node *adj_hard_swish_grad(adj_node *dy, adj_node *x)
{
    return adj_node_new2(&adj_op_hard_swish_grad, dy, x, NULL);
}
