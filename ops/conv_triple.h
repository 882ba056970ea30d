/* conv_triple.h - what conv2d.c and depthwise_conv2d.c share: shape rules and builders of a
 * convolution and its two adjoints. depthwise: the filter is [kh, kw, in, multiplier]. */
#ifndef CONV_TRIPLE_H
#define CONV_TRIPLE_H

#include "adjoint_ext.h"

adj_status conv_infer(const adj_node *n, void *attrs, adj_type *out, int depthwise);
adj_status conv_infer_backprop_input(const adj_node *n, void *attrs, adj_type *out, int depthwise);
adj_status conv_infer_backprop_filter(const adj_node *n, void *attrs, adj_type *out, int depthwise);

adj_node *conv_new(const adj_op *op, adj_node *x, adj_node *w, const adj_conv *conv);
/* may_be_spatial: input_sizes may be [height, width]. */
adj_node *conv_new_backprop_input(const adj_op *op, adj_shape input_sizes, int may_be_spatial,
                                  adj_node *w, adj_node *dy, const adj_conv *conv);
adj_node *conv_new_backprop_filter(const adj_op *op, adj_node *x, adj_shape filter_sizes,
                                   adj_node *dy, const adj_conv *conv);

/* Of all three, taps in the padding counted. */
double conv_flop(const adj_node *n);

#endif
