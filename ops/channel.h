/* channel.h - declarations shared by ops whose only special axis is the channels: bias_add,
 * prelu, batch norm, group norm. x, operand 0, has rank 2 to 5; its channels are the last axis
 * (ADJ_NHWC) or axis 1 (ADJ_NCHW). */
#ifndef OPS_CHANNEL_H
#define OPS_CHANNEL_H

#include "graph/op.h"

/* Attributes with the format alone: adj_format_attrs. */
extern const adj_schema format_schema;

int channel_axis(adj_shape x, int64_t format);
int64_t channels_of(const adj_node *x, int64_t format);
/* Checks that operand 0 is a float of such a rank. */
adj_status check_channels(const adj_node *n);

#endif
