/* softplus.c - log(1 + exp(x)), a smooth max(x, 0). Its derivative is sigmoid(x). */
#include "activation.h"

static void rule(adj_node *y, adj_node *dy, adj_node *dx[])
{
    adj_node *slope = adj_sigmoid(y->in[0]);
    dx[0] = adj_mul(dy, slope);
}

const adj_op adj_op_softplus = {.name = "softplus", .n_in = 1, .flags = CURVED, .grad = rule};

adj_node *adj_softplus(adj_node *x) { return adj_node_new1(&adj_op_softplus, x, NULL); }
