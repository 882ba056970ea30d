/* activation.c - relu, relu6, leaky_relu, sigmoid, tanh, silu.
 *
 * Gradients are ops of their own (activation_grad.c), in terms of the result where that is enough:
 * then the operand need not be kept, and relu stays fusable with the convolution before it. */
#include <math.h>

#include "activation.h"

adj_status activation_infer(const adj_node *n, void *attrs, adj_type *out)
{
    (void)attrs;
    *out = n->in[0]->type;
    return adj_check_same_dtype(n);
}

adj_status alpha_infer(const adj_node *n, void *attrs, adj_type *out)
{
    const adj_value_attrs *a = attrs;
    if (!isfinite(a->value))
        return adj_fail(n->graph, ADJ_EARG, "%s: alpha is wrong (got %g, expected a number)",
                        n->op->name, a->value);
    return activation_infer(n, attrs, out);
}

void alpha_show(const void *attrs, FILE *f)
{
    fprintf(f, " alpha=%g", ((const adj_value_attrs *)attrs)->value);
}

static void relu_grad(adj_node *y, adj_node *dy, adj_node *dx[]) { dx[0] = adj_relu_grad(dy, y); }

static void relu6_grad(adj_node *y, adj_node *dy, adj_node *dx[]) { dx[0] = adj_relu6_grad(dy, y); }

/* y has the sign of x unless alpha is negative. */
static void leaky_relu_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    double alpha = ((const adj_value_attrs *)y->attrs)->value;
    dx[0] = adj_leaky_relu_grad(dy, alpha < 0 ? y->in[0] : y, alpha);
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

/* Both of relu6's bends are inside. */
static void relu6_domain(const adj_node *n, int i, int64_t count, double v[])
{
    (void)n, (void)i;
    adj_spread(count, v, -4, 10);
}

const adj_op adj_op_relu = {
    .name = "relu",
    .min_in = 1,
    .max_in = 1,
    .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_KINKS | ADJ_OP_HALF | ADJ_OP_CHEAP,
    .infer = activation_infer,
    .grad = relu_grad,
};

const adj_op adj_op_relu6 = {
    .name = "relu6",
    .domain = relu6_domain,
    .min_in = 1,
    .max_in = 1,
    .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_KINKS | ADJ_OP_HALF | ADJ_OP_CHEAP,
    .infer = activation_infer,
    .grad = relu6_grad,
};

const adj_op adj_op_leaky_relu = {
    .name = "leaky_relu",
    .min_in = 1,
    .max_in = 1,
    .attr_size = sizeof(adj_value_attrs),
    .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_KINKS | ADJ_OP_HALF | ADJ_OP_CHEAP,
    .infer = alpha_infer,
    .grad = leaky_relu_grad,
    .show = alpha_show,
};

const adj_op adj_op_sigmoid = {
    .name = "sigmoid",
    .min_in = 1,
    .max_in = 1,
    .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_HALF,
    .infer = activation_infer,
    .grad = sigmoid_grad,
};

const adj_op adj_op_tanh = {
    .name = "tanh",
    .min_in = 1,
    .max_in = 1,
    .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_HALF,
    .infer = activation_infer,
    .grad = tanh_grad,
};

const adj_op adj_op_silu = {
    .name = "silu",
    .min_in = 1,
    .max_in = 1,
    .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_HALF,
    .infer = activation_infer,
    .grad = silu_grad,
};

adj_node *adj_relu(adj_node *x) { return adj_node_new1(&adj_op_relu, x, NULL); }
adj_node *adj_relu6(adj_node *x) { return adj_node_new1(&adj_op_relu6, x, NULL); }

adj_node *adj_leaky_relu(adj_node *x, double alpha)
{
    return adj_node_new1(&adj_op_leaky_relu, x, &(adj_value_attrs){.value = alpha});
}

adj_node *adj_sigmoid(adj_node *x) { return adj_node_new1(&adj_op_sigmoid, x, NULL); }
adj_node *adj_tanh(adj_node *x) { return adj_node_new1(&adj_op_tanh, x, NULL); }
adj_node *adj_silu(adj_node *x) { return adj_node_new1(&adj_op_silu, x, NULL); }
