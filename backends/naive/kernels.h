/* kernels.h - the naive kernels of one element type (see elem.h), and the table that names them.
 *
 * A kernel computes one node: c->group->node[0], whose operands are c->in in the order of group->in
 * (an operand that the node reads twice is there once: use operand()). Everything is plain
 * row-major. A kernel never sees a result without elements, but its operands may have none. */
#ifndef NAIVE_KERNELS_H
#define NAIVE_KERNELS_H

#include "elem.h"
#include "naive.h"

extern const naive_entry KERNEL(table)[];

/* The data of the node's operand i. */
static inline const void *operand(const adj_call *c, int i)
{
    const adj_node *wanted = c->group->node[0]->in[i];
    int k = 0;
    while (c->group->in[k] != wanted)
        k++;
    return c->in[k];
}

adj_status KERNEL(fill)(const adj_call *c);
adj_status KERNEL(conv2d)(const adj_call *c);
adj_status KERNEL(conv2d_backprop_input)(const adj_call *c);
adj_status KERNEL(conv2d_backprop_filter)(const adj_call *c);
adj_status KERNEL(depthwise_conv2d_native)(const adj_call *c);
adj_status KERNEL(depthwise_conv2d_native_backprop_input)(const adj_call *c);
adj_status KERNEL(depthwise_conv2d_native_backprop_filter)(const adj_call *c);
size_t KERNEL(conv2d_backprop_input_scratch)(const adj_node *n);
adj_status KERNEL(bias_add)(const adj_call *c);
adj_status KERNEL(bias_add_grad)(const adj_call *c);
adj_status KERNEL(relu)(const adj_call *c);
adj_status KERNEL(relu6)(const adj_call *c);
adj_status KERNEL(leaky_relu)(const adj_call *c);
adj_status KERNEL(sigmoid)(const adj_call *c);
adj_status KERNEL(tanh)(const adj_call *c);
adj_status KERNEL(silu)(const adj_call *c);
adj_status KERNEL(hard_sigmoid)(const adj_call *c);
adj_status KERNEL(hard_swish)(const adj_call *c);
adj_status KERNEL(clip)(const adj_call *c);
adj_status KERNEL(elu)(const adj_call *c);
adj_status KERNEL(gelu)(const adj_call *c);
adj_status KERNEL(prelu)(const adj_call *c);
adj_status KERNEL(relu_grad)(const adj_call *c);
adj_status KERNEL(relu6_grad)(const adj_call *c);
adj_status KERNEL(leaky_relu_grad)(const adj_call *c);
adj_status KERNEL(sigmoid_grad)(const adj_call *c);
adj_status KERNEL(tanh_grad)(const adj_call *c);
adj_status KERNEL(silu_grad)(const adj_call *c);
adj_status KERNEL(hard_sigmoid_grad)(const adj_call *c);
adj_status KERNEL(hard_swish_grad)(const adj_call *c);
adj_status KERNEL(clip_grad)(const adj_call *c);
adj_status KERNEL(elu_grad)(const adj_call *c);
adj_status KERNEL(gelu_grad)(const adj_call *c);
adj_status KERNEL(prelu_grad)(const adj_call *c);
adj_status KERNEL(prelu_grad_slope)(const adj_call *c);
adj_status KERNEL(add)(const adj_call *c);
adj_status KERNEL(sub)(const adj_call *c);
adj_status KERNEL(mul)(const adj_call *c);
adj_status KERNEL(div)(const adj_call *c);
adj_status KERNEL(maximum)(const adj_call *c);
adj_status KERNEL(minimum)(const adj_call *c);
adj_status KERNEL(equal)(const adj_call *c);
adj_status KERNEL(greater_equal)(const adj_call *c);
adj_status KERNEL(neg)(const adj_call *c);
adj_status KERNEL(scale)(const adj_call *c);
adj_status KERNEL(square)(const adj_call *c);
adj_status KERNEL(sqrt)(const adj_call *c);
adj_status KERNEL(exp)(const adj_call *c);
adj_status KERNEL(log)(const adj_call *c);
adj_status KERNEL(cast)(const adj_call *c);
adj_status KERNEL(matmul)(const adj_call *c);
adj_status KERNEL(transpose)(const adj_call *c);
adj_status KERNEL(concat)(const adj_call *c);
adj_status KERNEL(pad)(const adj_call *c);
adj_status KERNEL(slice)(const adj_call *c);
adj_status KERNEL(broadcast_to)(const adj_call *c);
adj_status KERNEL(reduce_sum)(const adj_call *c);
adj_status KERNEL(reduce_mean)(const adj_call *c);
adj_status KERNEL(reduce_max)(const adj_call *c);
adj_status KERNEL(max_pool)(const adj_call *c);
adj_status KERNEL(max_pool_grad)(const adj_call *c);
adj_status KERNEL(max_pool_grad_grad)(const adj_call *c);
adj_status KERNEL(max_pool_argmax)(const adj_call *c);
adj_status KERNEL(max_pool_grad_argmax)(const adj_call *c);
adj_status KERNEL(avg_pool)(const adj_call *c);
adj_status KERNEL(avg_pool_grad)(const adj_call *c);
adj_status KERNEL(resize)(const adj_call *c);
adj_status KERNEL(resize_grad)(const adj_call *c);
adj_status KERNEL(batch_norm_stats)(const adj_call *c);
adj_status KERNEL(batch_norm)(const adj_call *c);
adj_status KERNEL(batch_norm_grad_sums)(const adj_call *c);
adj_status KERNEL(batch_norm_grad)(const adj_call *c);
adj_status KERNEL(group_norm)(const adj_call *c);
adj_status KERNEL(group_norm_grad_sums)(const adj_call *c);
adj_status KERNEL(group_norm_grad)(const adj_call *c);
adj_status KERNEL(softmax)(const adj_call *c);
adj_status KERNEL(log_softmax)(const adj_call *c);
adj_status KERNEL(softmax_cross_entropy)(const adj_call *c);
adj_status KERNEL(softmax_cross_entropy_grad)(const adj_call *c);
adj_status KERNEL(sparse_softmax_cross_entropy)(const adj_call *c);
adj_status KERNEL(sparse_softmax_cross_entropy_grad)(const adj_call *c);
adj_status KERNEL(label_count)(const adj_call *c);
adj_status KERNEL(dropout)(const adj_call *c);
adj_status KERNEL(momentum)(const adj_call *c);
adj_status KERNEL(sgd_step)(const adj_call *c);
adj_status KERNEL(ema)(const adj_call *c);
adj_status KERNEL(adam_step)(const adj_call *c);
adj_status KERNEL(next_step)(const adj_call *c);
size_t KERNEL(max_pool_grad_scratch)(const adj_node *n);
size_t KERNEL(batch_norm_scratch)(const adj_node *n);
size_t KERNEL(group_norm_grad_sums_scratch)(const adj_node *n);

#endif
