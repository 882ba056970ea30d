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

#endif
