/* kernels.h - the naive kernels of one element type (see elem.h), and the tables that name them.
 *
 * A kernel computes one node: c->group->node[0]. Its operands are c->in in the order of
 * group->in, where an operand that the node reads twice appears once: use operand(). All tensors
 * are plain row-major. Results are never empty, but operands may be. */
#ifndef NAIVE_KERNELS_H
#define NAIVE_KERNELS_H

#include "elem.h"
#include "naive.h"

extern const naive_entry KERNEL(table)[], KERNEL(elementwise)[];

/* Returns the data of the node's operand i. */
static inline const void *operand(const adj_call *c, int i)
{
    const adj_node *wanted = c->group->node[0]->in[i];
    int k = 0;
    while (c->group->in[k] != wanted)
        k++;
    return c->in[k];
}

/* A line for each family. */
naive_run KERNEL(fill);
naive_run KERNEL(conv2d), KERNEL(conv2d_backprop_input), KERNEL(conv2d_backprop_filter);
naive_run KERNEL(bias_add_grad), KERNEL(prelu_grad_slope);
naive_run KERNEL(cast), KERNEL(matmul), KERNEL(transpose), KERNEL(concat), KERNEL(pad),
    KERNEL(slice), KERNEL(broadcast_to);
naive_run KERNEL(reduce_sum), KERNEL(reduce_mean), KERNEL(reduce_max), KERNEL(argmax);
naive_run KERNEL(select), KERNEL(all_finite);
naive_run KERNEL(max_pool), KERNEL(max_pool_grad), KERNEL(max_pool_grad_grad),
    KERNEL(max_pool_argmax), KERNEL(max_pool_grad_argmax);
naive_run KERNEL(avg_pool), KERNEL(avg_pool_grad), KERNEL(resize), KERNEL(resize_grad);
naive_run KERNEL(batch_norm_stats), KERNEL(batch_norm), KERNEL(batch_norm_grad_sums),
    KERNEL(batch_norm_grad);
naive_run KERNEL(group_norm), KERNEL(group_norm_grad_sums), KERNEL(group_norm_grad);
naive_run KERNEL(softmax), KERNEL(log_softmax), KERNEL(softmax_cross_entropy),
    KERNEL(softmax_cross_entropy_grad), KERNEL(label_count);
naive_run KERNEL(dropout), KERNEL(all_reduce), KERNEL(next_step);
naive_scratch KERNEL(conv2d_backprop_input_scratch), KERNEL(max_pool_grad_scratch),
    KERNEL(batch_norm_scratch), KERNEL(group_norm_grad_sums_scratch);

#endif
