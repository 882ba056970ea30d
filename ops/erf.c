/* erf.c - the error function, 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x. Its
 * derivative is 2 / sqrt(pi) exp(-x^2). */
#include "activation.h"

static void rule(adj_node *y, adj_node *dy, adj_node *dx[])
{
    adj_node *bell = adj_exp(adj_neg(adj_square(y->in[0])));
    dx[0] = adj_mul(dy, adj_scale(bell, 1.1283791670955126));
}

const adj_op adj_op_erf = {.name = "erf", .n_in = 1, .flags = CURVED, .grad = rule};

adj_node *adj_erf(adj_node *x) { return adj_node_new1(&adj_op_erf, x, NULL); }
