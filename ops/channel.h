/* channel.h - declarations shared by ops whose only special axis is the channels: bias_add,
 * prelu, batch norm, group norm. x, operand 0, has rank 2 to 5; its channels are the last axis
 * (ADJ_NHWC) or axis 1 (ADJ_NCHW).
 *
 * Statistics, gamma, beta and sums over many elements have the statistics type: f32 for half x,
 * else x's. */
#ifndef OPS_CHANNEL_H
#define OPS_CHANNEL_H

#include "graph/op.h"

/* Attributes with the format alone: adj_format_attrs. */
extern const adj_schema format_schema;

int channel_axis(adj_shape x, int64_t format);
int64_t channels_of(const adj_node *x, int64_t format);
/* Checks that operand 0 is a float of such a rank. */
adj_status check_channels(const adj_node *n);
/* Implements adj_op.infer: operands have the types of adj_op.example; the result is an
 * image like x, or two rows of statistics. */
adj_status channel_infer(const adj_node *n, void *attrs, adj_type *out);

/* ---- normalization: types of operands, and pieces of gradient rules ---- */

/* Reshapes [c] to broadcast over x's channels. */
adj_node *norm_along(adj_node *v, const adj_node *x, int64_t format);
/* Returns x * v along the channels, in x's type. */
adj_node *norm_times(adj_node *x, adj_node *v, int64_t format);
/* Returns sum(a * b) per channel, [c], in the statistics type. */
adj_node *norm_dot(adj_node *a, adj_node *b, int64_t format);

#endif
