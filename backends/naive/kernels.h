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

/* What an elementwise kernel computes: y[i] from a[i] and b[i], for i < n. */
struct part {
    const T *a, *b; /* b: NULL when there is no operand 1 */
    T *y;
    int64_t n;
    const void *attrs;
};

adj_status KERNEL(for_parts)(const adj_call *c, void (*each)(const part *p));

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
size_t KERNEL(conv2d_backprop_input_scratch)(const adj_node *n);
adj_status KERNEL(bias_add)(const adj_call *c);
adj_status KERNEL(bias_add_grad)(const adj_call *c);
void KERNEL(relu)(const part *p);
void KERNEL(relu6)(const part *p);
void KERNEL(leaky_relu)(const part *p);
void KERNEL(sigmoid)(const part *p);
void KERNEL(tanh)(const part *p);
void KERNEL(silu)(const part *p);
void KERNEL(hard_sigmoid)(const part *p);
void KERNEL(hard_swish)(const part *p);
void KERNEL(clip)(const part *p);
void KERNEL(elu)(const part *p);
void KERNEL(gelu)(const part *p);
adj_status KERNEL(prelu)(const adj_call *c);
void KERNEL(relu_grad)(const part *p);
void KERNEL(relu6_grad)(const part *p);
void KERNEL(leaky_relu_grad)(const part *p);
void KERNEL(sigmoid_grad)(const part *p);
void KERNEL(tanh_grad)(const part *p);
void KERNEL(silu_grad)(const part *p);
void KERNEL(hard_sigmoid_grad)(const part *p);
void KERNEL(hard_swish_grad)(const part *p);
void KERNEL(clip_grad)(const part *p);
void KERNEL(elu_grad)(const part *p);
void KERNEL(gelu_grad)(const part *p);
adj_status KERNEL(prelu_grad)(const adj_call *c);
adj_status KERNEL(prelu_grad_slope)(const adj_call *c);
void KERNEL(add)(const part *p);
void KERNEL(sub)(const part *p);
void KERNEL(mul)(const part *p);
void KERNEL(div)(const part *p);
void KERNEL(maximum)(const part *p);
void KERNEL(minimum)(const part *p);
void KERNEL(equal)(const part *p);
void KERNEL(greater_equal)(const part *p);
void KERNEL(neg)(const part *p);
void KERNEL(scale)(const part *p);
void KERNEL(square)(const part *p);
void KERNEL(sqrt)(const part *p);
void KERNEL(exp)(const part *p);
void KERNEL(log)(const part *p);
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
