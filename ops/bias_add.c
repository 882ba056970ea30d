/* bias_add.c - adding a bias to each channel, and its gradient.
 *
 * y[.., c, ..] = x[.., c, ..] + b[c], the channel being the last axis (NHWC) or axis 1 (NCHW).
 *   y  = bias_add(x, b)      dx = dy       db = bias_add_grad(dy), the sum over all other axes
 *   b' = bias_add_grad(dy)   its adjoint repeats e along the other axes */
#include "adjoint_ext.h"
#include "attr_lists.h"
#include "channel.h"
#include "ops/rules/max_pool.h"

int64_t channel_axis(adj_shape shape, int64_t format)
{
    return format == ADJ_NHWC ? shape.rank - 1 : 1;
}

adj_status check_channels(const adj_node *n, const char *value, int64_t format)
{
    adj_shape shape = n->in[0]->type.shape;
    adj_status status = adj_check_same_dtype(n);

    if (status != ADJ_OK)
        return status;
    if (format != ADJ_NHWC && format != ADJ_NCHW)
        return adj_fail(n->graph, ADJ_EARG,
                        "%s: unknown data_format (got %ld, expected NHWC or NCHW)", n->op->name,
                        (long)format);
    if (shape.rank < 2 || shape.rank > 5)
        return adj_fail(n->graph, ADJ_ESHAPE,
                        "%s: %s has a wrong rank (got %s, expected rank 2 to 5)", n->op->name,
                        value, adj_shape_text(shape).s);
    return ADJ_OK;
}

static adj_status bias_add_infer(const adj_node *n, void *attrs, adj_type *out)
{
    const adj_format_attrs *a = attrs;
    adj_shape x = n->in[0]->type.shape, b = n->in[1]->type.shape;
    adj_status status = check_channels(n, "value", a->format);

    if (status != ADJ_OK)
        return status;
    int64_t c = x.dim[channel_axis(x, a->format)];
    if (b.rank != 1 || b.dim[0] != c)
        return adj_fail(n->graph, ADJ_ESHAPE,
                        "bias_add: bias has a wrong shape (got %s, expected [%ld])",
                        adj_shape_text(b).s, (long)c);
    *out = n->in[0]->type;
    return ADJ_OK;
}

static adj_status bias_add_grad_infer(const adj_node *n, void *attrs, adj_type *out)
{
    const adj_format_attrs *a = attrs;
    adj_shape dy = n->in[0]->type.shape;
    adj_status status = check_channels(n, "out_backprop", a->format);

    if (status != ADJ_OK)
        return status;
    *out = (adj_type){.dtype = n->in[0]->type.dtype,
                      .shape = {.rank = 1, .dim = {dy.dim[channel_axis(dy, a->format)]}}};
    return ADJ_OK;
}

static void bias_add_rule(adj_node *y, adj_node *dy, adj_node *dx[])
{
    const adj_format_attrs *a = y->attrs;

    dx[0] = dy;
    dx[1] = adj_bias_add_grad(dy, (adj_format)a->format);
}

static void bias_add_grad_rule(adj_node *db, adj_node *e, adj_node *de[])
{
    const adj_format_attrs *a = db->attrs;
    adj_shape dy = db->in[0]->type.shape, along_channel = {.rank = dy.rank};

    for (int64_t i = 0; i < dy.rank; i++)
        along_channel.dim[i] = i == channel_axis(dy, a->format) ? dy.dim[i] : 1;
    de[0] = adj_broadcast_to(adj_reshape(e, along_channel), dy);
}

void format_show(const void *attrs, FILE *f)
{
    fputs(((const adj_format_attrs *)attrs)->format == ADJ_NCHW ? " NCHW" : "", f);
}

const adj_op adj_op_bias_add = {
    .name = "bias_add",
    .min_in = 2,
    .max_in = 2,
    .flags = ADJ_OP_HALF,
    .attr_size = sizeof(adj_format_attrs),
    .linear_in = 3,
    .sum_in = 3,
    .infer = bias_add_infer,
    .grad = bias_add_rule,
    .show = format_show,
    .operand = {"input", "bias"},
    .images = 1 | ADJ_IMAGE_RESULT,
    .set_format = format_set,
};

const adj_op adj_op_bias_add_grad = {
    .name = "bias_add_grad",
    .min_in = 1,
    .max_in = 1,
    .attr_size = sizeof(adj_format_attrs),
    .linear_in = 1,
    .infer = bias_add_grad_infer,
    .grad = bias_add_grad_rule,
    .rewrite_with_users = bias_add_grad_rewrite_with_users,
    .show = format_show,
    .operand = {"out_backprop"},
    .images = 1,
    .set_format = format_set,
};

adj_node *adj_bias_add(adj_node *x, adj_node *b, adj_format format)
{
    return adj_node_new2(&adj_op_bias_add, x, b, &(adj_format_attrs){.format = format});
}

adj_node *adj_bias_add_grad(adj_node *dy, adj_format format)
{
    return adj_node_new1(&adj_op_bias_add_grad, dy, &(adj_format_attrs){.format = format});
}
