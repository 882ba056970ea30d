/* elu.c - x where x > 0, else alpha (exp(x) - 1), as ONNX's and PyTorch's, and its gradient as an
 * op: dy where x > 0, else dy alpha exp(x). */
#include "activation.h"
#include "grad.h"

static double alpha_of(const adj_node *n) { return ((const adj_value_attrs *)n->attrs)->value; }

static void rule(adj_node *y, adj_node *dy, adj_node *dx[])
{
    dx[0] = adj_elu_grad(dy, y->in[0], alpha_of(y));
}

/* d/dx is dy alpha exp(x) where x <= 0: the op minus itself with alpha 0. (A mask would be
 * marked ADJ_OP_KINKS, but the function that it selects from is curved.) */
static void grad_rule(adj_node *dx, adj_node *e, adj_node *de[])
{
    adj_node *dy = dx->in[0], *x = dx->in[1];
    de[0] = adj_elu_grad(e, x, alpha_of(dx));
    adj_node *m = adj_mul(e, dy), *above = adj_elu_grad(m, x, 0);
    de[1] = adj_sub(adj_elu_grad(m, x, alpha_of(dx)), above);
}

/* Draws no x near 0. The op is not marked ADJ_OP_KINKS, because it is curved below 0. */
static void domain(const adj_node *n, int i, int64_t count, double v[])
{
    if (i != n->n_in - 1)
        return;
    adj_spread(count, v, -3, 3);
    keep_from_zero(count, v);
}

const adj_op adj_op_elu = {.name = "elu",
                           .n_in = 1,
                           .schema = &alpha_schema,
                           .flags = CURVED,
                           .grad = rule,
                           .domain = domain};
const adj_op adj_op_elu_grad = {.name = "elu_grad",
                                .n_in = 2,
                                .schema = &alpha_schema,
                                .flags = CURVED,
                                .linear_in = ADJ_IN(0),
                                .grad = grad_rule,
                                .operand = {"dy", "x"},
                                .domain = domain};

adj_node *adj_elu(adj_node *x, double alpha)
{
    return adj_node_new1(&adj_op_elu, x, &(adj_value_attrs){alpha});
}

adj_node *adj_elu_grad(adj_node *dy, adj_node *x, double alpha)
{
    return adj_node_new2(&adj_op_elu_grad, dy, x, &(adj_value_attrs){alpha});
}
