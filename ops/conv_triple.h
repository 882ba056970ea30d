/* conv_triple.h - what conv2d.c and depthwise_conv2d.c share: a convolution and its two adjoints,
 * as shape rules, gradient rules and builders. Which of the two families a node is of, its op says:
 * in the depthwise one the filter is [kh, kw, in, multiplier].
 *
 * The three ops are closed under differentiation; d is the incoming gradient:
 *   y  = conv(x, w)              dx = backprop_input(w, d)     dw = backprop_filter(x, d)
 *   x' = backprop_input(w, e)    dw = backprop_filter(d, e)    de = conv(d, w)
 *   w' = backprop_filter(x, e)   dx = backprop_input(d, e)     de = conv(x, d)
 * So a derivative of any order needs no new kernel. */
#ifndef CONV_TRIPLE_H
#define CONV_TRIPLE_H

#include "adjoint_ext.h"

adj_status conv_infer(const adj_node *n, void *attrs, adj_type *out);
adj_status conv_infer_backprop_input(const adj_node *n, void *attrs, adj_type *out);
adj_status conv_infer_backprop_filter(const adj_node *n, void *attrs, adj_type *out);

void conv_grad(adj_node *y, adj_node *dy, adj_node *dx[]);
void conv_grad_backprop_input(adj_node *y, adj_node *dy, adj_node *dx[]);
void conv_grad_backprop_filter(adj_node *y, adj_node *dy, adj_node *dx[]);

adj_node *conv_new(const adj_op *op, adj_node *x, adj_node *w, const adj_conv *conv);
/* input_sizes may be [height, width] for conv2d. */
adj_node *conv_new_backprop_input(const adj_op *op, adj_shape input_sizes, adj_node *w,
                                  adj_node *dy, const adj_conv *conv);
adj_node *conv_new_backprop_filter(const adj_op *op, adj_node *x, adj_shape filter_sizes,
                                   adj_node *dy, const adj_conv *conv);

/* Of all three, taps in the padding counted. */
double conv_flop(const adj_node *n);

#endif
