/* hard_swish.c - x hard_sigmoid(x), as PyTorch's Hardswish and ONNX's HardSwish, and its gradient
 * as an op: dy (x / 3 + 1/2) where -3 < x < 3; above dy, below 0. */
#include "activation.h"

static void rule(adj_node *y, adj_node *dy, adj_node *dx[])
{
    dx[0] = adj_hard_swish_grad(dy, y->in[0]);
}

/* d/dx of dy (x / 3 + 1/2) is dy / 3, which is twice hard_sigmoid's gradient. */
static void grad_rule(adj_node *dx, adj_node *e, adj_node *de[])
{
    adj_node *dy = dx->in[0], *x = dx->in[1];
    de[0] = adj_hard_swish_grad(e, x);
    adj_node *product = adj_scale(adj_mul(e, dy), 2);
    de[1] = adj_hard_sigmoid_grad(product, x);
}

const adj_op adj_op_hard_swish = {
    .name = "hard_swish",
    .min_in = 1,
    .max_in = 1,
    .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_HALF | ADJ_OP_CHEAP,
    .infer = activation_infer,
    .grad = rule,
    .domain = hard_domain,
};

const adj_op adj_op_hard_swish_grad = {
    .name = "hard_swish_grad",
    .min_in = 2,
    .max_in = 2,
    .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_HALF,
    .linear_in = 1,
    .infer = activation_grad_infer,
    .grad = grad_rule,
    .operand = {"dy", "x"},
    .domain = hard_domain,
};

adj_node *adj_hard_swish(adj_node *x) { return adj_node_new1(&adj_op_hard_swish, x, NULL); }

adj_node *adj_hard_swish_grad(adj_node *dy, adj_node *x)
{
    return adj_node_new2(&adj_op_hard_swish_grad, dy, x, NULL);
}
