/* depthwise_conv2d.c - depthwise convolution and its two adjoints.
 *
 * y[.., c*multiplier + m] = sum over kh, kw of x[.., c] * w[kh, kw, c, m]: every input channel has
 * its own filters. The triple is closed under differentiation as that of conv2d.c is. */
#include "adjoint_ext.h"
#include "conv_geom.h"
#include "conv_triple.h"

adj_node *adj_depthwise_conv2d_native(adj_node *x, adj_node *w, const adj_conv *a)
{
    return conv_new(&adj_op_depthwise_conv2d_native, x, w, a);
}

adj_node *adj_depthwise_conv2d_native_backprop_input(adj_shape input_sizes, adj_node *w,
                                                     adj_node *dy, const adj_conv *a)
{
    return conv_new_backprop_input(&adj_op_depthwise_conv2d_native_backprop_input, input_sizes, 0,
                                   w, dy, a);
}

adj_node *adj_depthwise_conv2d_native_backprop_filter(adj_node *x, adj_shape filter_sizes,
                                                      adj_node *dy, const adj_conv *a)
{
    return conv_new_backprop_filter(&adj_op_depthwise_conv2d_native_backprop_filter, x,
                                    filter_sizes, dy, a);
}

static adj_status depthwise_infer(const adj_node *n, void *attrs, adj_type *out)
{
    return conv_infer(n, attrs, out, 1);
}

static void depthwise_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    adj_node *x = y->in[0], *w = y->in[1];
    const adj_conv_attrs *a = y->attrs;

    dx[0] = adj_depthwise_conv2d_native_backprop_input(x->type.shape, w, dy, &a->conv);
    dx[1] = adj_depthwise_conv2d_native_backprop_filter(x, w->type.shape, dy, &a->conv);
}

const adj_op adj_op_depthwise_conv2d_native = {
    .name = "depthwise_conv2d_native",
    .min_in = 2,
    .max_in = 2,
    .attr_size = sizeof(adj_conv_attrs),
    .linear_in = 3,
    .infer = depthwise_infer,
    .grad = depthwise_grad,
    .flop = conv_flop,
    .show = conv_show,
};

static adj_status backprop_input_infer(const adj_node *n, void *attrs, adj_type *out)
{
    return conv_infer_backprop_input(n, attrs, out, 1);
}

static void backprop_input_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    adj_node *w = y->in[0], *e = y->in[1];
    const adj_conv_attrs *a = y->attrs;

    dx[0] = adj_depthwise_conv2d_native_backprop_filter(dy, w->type.shape, e, &a->conv);
    dx[1] = adj_depthwise_conv2d_native(dy, w, &a->conv);
}

const adj_op adj_op_depthwise_conv2d_native_backprop_input = {
    .name = "depthwise_conv2d_native_backprop_input",
    .min_in = 2,
    .max_in = 2,
    .attr_size = sizeof(adj_conv_attrs),
    .linear_in = 3,
    .infer = backprop_input_infer,
    .grad = backprop_input_grad,
    .flop = conv_flop,
    .show = conv_show,
};

static adj_status backprop_filter_infer(const adj_node *n, void *attrs, adj_type *out)
{
    return conv_infer_backprop_filter(n, attrs, out, 1);
}

static void backprop_filter_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    adj_node *x = y->in[0], *e = y->in[1];
    const adj_conv_attrs *a = y->attrs;

    if (a->geom.oc == 0) { /* an empty filter gradient is legal, an empty filter is not */
        dx[0] = adj_fill_like(x, 0);
        dx[1] = adj_fill_like(e, 0);
        return;
    }
    dx[0] = adj_depthwise_conv2d_native_backprop_input(x->type.shape, dy, e, &a->conv);
    dx[1] = adj_depthwise_conv2d_native(x, dy, &a->conv);
}

const adj_op adj_op_depthwise_conv2d_native_backprop_filter = {
    .name = "depthwise_conv2d_native_backprop_filter",
    .min_in = 2,
    .max_in = 2,
    .attr_size = sizeof(adj_conv_attrs),
    .linear_in = 3,
    .infer = backprop_filter_infer,
    .grad = backprop_filter_grad,
    .flop = conv_flop,
    .show = conv_show,
};
