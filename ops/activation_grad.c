/* activation_grad.c - the gradients of activations as ops.
 *
 *   relu_grad(dy, y)        dy where y > 0, else 0
 *   relu6_grad(dy, y)       dy where 0 < y < 6, else 0
 *   leaky_relu_grad(dy, y)  dy where y > 0, else alpha dy
 *   sigmoid_grad(dy, y)     dy y (1 - y)
 *   tanh_grad(dy, y)        dy (1 - y^2)
 *   silu_grad(dy, x)        dy (s + x s (1 - s)),  s = sigmoid(x)
 * Each is linear in dy, so with e the gradient that arrives, the one of dy is the same op on e. The
 * second operand's is zero almost everywhere for the first three, and below for the others. */
#include "activation.h"
#include "ops/rules/max_pool.h"

adj_status activation_grad_infer(const adj_node *n, void *attrs, adj_type *out)
{
    (void)attrs;
    *out = n->in[0]->type;
    adj_status status = adj_check_same_dtype(n);
    if (status != ADJ_OK)
        return status;
    if (!adj_shape_equal(n->in[0]->type.shape, n->in[1]->type.shape))
        return adj_fail(n->graph, ADJ_ESHAPE,
                        "%s: gradients and features differ in shape (got %s, expected %s)",
                        n->op->name, adj_shape_text(n->in[0]->type.shape).s,
                        adj_shape_text(n->in[1]->type.shape).s);
    return ADJ_OK;
}

adj_status alpha_grad_infer(const adj_node *n, void *attrs, adj_type *out)
{
    adj_status status = alpha_infer(n, attrs, out);
    return status == ADJ_OK ? activation_grad_infer(n, attrs, out) : status;
}

void keep_from_zero(int64_t count, double v[])
{
    for (int64_t k = 0; k < count; k++)
        v[k] += v[k] < 0 ? -0.125 : 0.125;
}

static void relu_grad_grad(adj_node *dx, adj_node *e, adj_node *de[])
{
    de[0] = adj_relu_grad(e, dx->in[1]);
    de[1] = NULL;
}

static void relu6_grad_grad(adj_node *dx, adj_node *e, adj_node *de[])
{
    de[0] = adj_relu6_grad(e, dx->in[1]);
    de[1] = NULL;
}

static void leaky_relu_grad_grad(adj_node *dx, adj_node *e, adj_node *de[])
{
    de[0] = adj_leaky_relu_grad(e, dx->in[1], ((const adj_value_attrs *)dx->attrs)->value);
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

const adj_op adj_op_relu_grad = {
    .name = "relu_grad",
    .min_in = 2,
    .max_in = 2,
    .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_KINKS | ADJ_OP_HALF,
    .linear_in = 1,
    .infer = activation_grad_infer,
    .grad = relu_grad_grad,
    .rewrite_with_users = relu_grad_rewrite_with_users,
    .operand = {"dy", "y"},
};

const adj_op adj_op_relu6_grad = {
    .name = "relu6_grad",
    .min_in = 2,
    .max_in = 2,
    .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_KINKS | ADJ_OP_HALF,
    .linear_in = 1,
    .infer = activation_grad_infer,
    .grad = relu6_grad_grad,
    .operand = {"dy", "y"},
};

const adj_op adj_op_leaky_relu_grad = {
    .name = "leaky_relu_grad",
    .min_in = 2,
    .max_in = 2,
    .attr_size = sizeof(adj_value_attrs),
    .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_KINKS | ADJ_OP_HALF,
    .linear_in = 1,
    .infer = alpha_grad_infer,
    .grad = leaky_relu_grad_grad,
    .show = alpha_show,
    .operand = {"dy", "y"},
};

const adj_op adj_op_sigmoid_grad = {
    .name = "sigmoid_grad",
    .min_in = 2,
    .max_in = 2,
    .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_HALF,
    .linear_in = 1,
    .infer = activation_grad_infer,
    .grad = sigmoid_grad_grad,
    .operand = {"dy", "y"},
};

const adj_op adj_op_tanh_grad = {
    .name = "tanh_grad",
    .min_in = 2,
    .max_in = 2,
    .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_HALF,
    .linear_in = 1,
    .infer = activation_grad_infer,
    .grad = tanh_grad_grad,
    .operand = {"dy", "y"},
};

const adj_op adj_op_silu_grad = {
    .name = "silu_grad",
    .min_in = 2,
    .max_in = 2,
    .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_HALF,
    .linear_in = 1,
    .infer = activation_grad_infer,
    .grad = silu_grad_grad,
    .operand = {"dy", "x"},
};

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
    return adj_node_new2(&adj_op_leaky_relu_grad, dy, y, &(adj_value_attrs){.value = alpha});
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
