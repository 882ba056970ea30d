/* hard_sigmoid.c - min(max(x + 3, 0), 6) / 6, as PyTorch's Hardsigmoid (ONNX's with alpha 1/6), and
 * its gradient as an op: dy / 6 where -3 < x < 3, else 0. */
#include <math.h>

#include "activation.h"

static void rule(adj_node *y, adj_node *dy, adj_node *dx[])
{
    dx[0] = adj_hard_sigmoid_grad(dy, y->in[0]);
}

static void grad_rule(adj_node *dx, adj_node *e, adj_node *de[])
{
    de[0] = adj_hard_sigmoid_grad(e, dx->in[1]);
    de[1] = NULL;
}

void hard_domain(const adj_node *n, int i, int64_t count, double v[])
{
    if (i != n->n_in - 1)
        return;
    adj_spread(count, v, -6, 6);
    for (int64_t k = 0; k < count; k++)
        if (fabs(fabs(v[k]) - 3) < 0.125)
            v[k] += 0.5;
}

const adj_op adj_op_hard_sigmoid = {
    .name = "hard_sigmoid",
    .min_in = 1,
    .max_in = 1,
    .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_HALF | ADJ_OP_CHEAP,
    .infer = activation_infer,
    .grad = rule,
    .domain = hard_domain,
};

const adj_op adj_op_hard_sigmoid_grad = {
    .name = "hard_sigmoid_grad",
    .min_in = 2,
    .max_in = 2,
    .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_KINKS | ADJ_OP_HALF,
    .linear_in = 1,
    .infer = activation_grad_infer,
    .grad = grad_rule,
    .operand = {"dy", "x"},
    .domain = hard_domain,
};

adj_node *adj_hard_sigmoid(adj_node *x) { return adj_node_new1(&adj_op_hard_sigmoid, x, NULL); }

adj_node *adj_hard_sigmoid_grad(adj_node *dy, adj_node *x)
{
    return adj_node_new2(&adj_op_hard_sigmoid_grad, dy, x, NULL);
}
