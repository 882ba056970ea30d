/* bias_add.c - adds a bias to each channel; and its gradient.
 *
 * y[.., c, ..] = x[.., c, ..] + b[c], the channel being the last axis (NHWC) or axis 1 (NCHW).
 *   y  = bias_add(x, b)      dx = dy       db = bias_add_grad(dy), the sum over all other axes
 *   b' = bias_add_grad(dy)   its adjoint repeats e along the other axes */
#include "channel.h"
#include "grad.h"
#include "ops/rules/rules.h"

static adj_status bias_add_grad_infer(const adj_node *n, void *attrs, adj_type *out)
{
    const adj_format_attrs *a = attrs;
    adj_status status = check_channels(n);
    if (status == ADJ_OK)
        *out = (adj_type){n->in[0]->type.dtype,
                          {.rank = 1, .dim = {channels_of(n->in[0], a->format)}}};
    return status;
}

static void bias_add_rule(adj_node *y, adj_node *dy, adj_node *dx[])
{
    dx[0] = dy;
    dx[1] = adj_bias_add_grad(dy, adj_format_of(y));
}

static void bias_add_grad_rule(adj_node *db, adj_node *e, adj_node *de[])
{
    const adj_node *dy = db->in[0];
    de[0] = adj_broadcast_to(norm_along(e, dy, adj_format_of(db)), dy->type.shape);
}

const adj_op adj_op_bias_add = {.name = "bias_add",
                                .example = {ADJ_EXAMPLE_X, ADJ_EXAMPLE_CHANNELS},
                                .n_in = 2,
                                .flags = ADJ_OP_HALF,
                                .schema = &format_schema,
                                .linear_in = ADJ_IN(0) | ADJ_IN(1),
                                .sum_in = ADJ_IN(0) | ADJ_IN(1),
                                .infer = channel_infer,
                                .grad = bias_add_rule,
                                .operand = {"input", "bias"},
                                .images = ADJ_IN(0) | ADJ_IMAGE_RESULT};

const adj_op adj_op_bias_add_grad = {.name = "bias_add_grad",
                                     .n_in = 1,
                                     .schema = &format_schema,
                                     .linear_in = ADJ_IN(0),
                                     .infer = bias_add_grad_infer,
                                     .grad = bias_add_grad_rule,
                                     .rewrite_with_users = bias_add_grad_rewrite_with_users,
                                     .operand = {"out_backprop"},
                                     .images = ADJ_IN(0)};

adj_node *adj_bias_add(adj_node *x, adj_node *b, adj_format format)
{
    return adj_node_new2(&adj_op_bias_add, x, b, &(adj_format_attrs){.format = format});
}

adj_node *adj_bias_add_grad(adj_node *dy, adj_format format)
{
    return adj_node_new1(&adj_op_bias_add_grad, dy, &(adj_format_attrs){.format = format});
}
