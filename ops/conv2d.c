/* conv2d.c - convolution and its two adjoints, which are closed under differentiation: their rules
 * are in conv_triple.c.
 *
 * y[n,oh,ow,o] = sum over kh, kw, c of x[n, oh*sh + kh*dh - ph, ow*sw + kw*dw - pw, c] *
 * w[kh,kw,c,o]. A filter whose in divides the input's channels is a grouped convolution, in all
 * three. */
#include "adjoint_ext.h"
#include "conv_geom.h"
#include "conv_triple.h"

adj_node *adj_conv2d(adj_node *x, adj_node *w, const adj_conv *a)
{
    return conv_new(&adj_op_conv2d, x, w, a);
}

adj_node *adj_conv2d_backprop_input(adj_shape input_sizes, adj_node *w, adj_node *dy,
                                    const adj_conv *a)
{
    return conv_new_backprop_input(&adj_op_conv2d_backprop_input, input_sizes, w, dy, a);
}

adj_node *adj_conv2d_backprop_filter(adj_node *x, adj_shape filter_sizes, adj_node *dy,
                                     const adj_conv *a)
{
    return conv_new_backprop_filter(&adj_op_conv2d_backprop_filter, x, filter_sizes, dy, a);
}

const adj_op adj_op_conv2d = {
    .name = "conv2d",
    .min_in = 2,
    .max_in = 2,
    .flags = ADJ_OP_HALF_ALWAYS,
    .attr_size = sizeof(adj_conv_attrs),
    .linear_in = 3,
    .infer = conv_infer,
    .grad = conv_grad,
    .flop = conv_flop,
    .show = conv_show,
};

const adj_op adj_op_conv2d_backprop_input = {
    .name = "conv2d_backprop_input",
    .min_in = 2,
    .max_in = 2,
    .flags = ADJ_OP_HALF_ALWAYS,
    .attr_size = sizeof(adj_conv_attrs),
    .linear_in = 3,
    .infer = conv_infer_backprop_input,
    .grad = conv_grad_backprop_input,
    .flop = conv_flop,
    .show = conv_show,
};

const adj_op adj_op_conv2d_backprop_filter = {
    .name = "conv2d_backprop_filter",
    .min_in = 2,
    .max_in = 2,
    .flags = ADJ_OP_HALF_ALWAYS | ADJ_OP_HALF_SUM,
    .attr_size = sizeof(adj_conv_attrs),
    .linear_in = 3,
    .infer = conv_infer_backprop_filter,
    .grad = conv_grad_backprop_filter,
    .flop = conv_flop,
    .show = conv_show,
};
