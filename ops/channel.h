/* channel.h - what ops share that know an image's channels and no other axis: bias_add, prelu.
 * bias_add.c defines it. */
#ifndef OPS_CHANNEL_H
#define OPS_CHANNEL_H

#include "adjoint_ext.h"

int64_t channel_axis(adj_shape shape, int64_t format);
/* All operands have operand 0's dtype, a float; the format is one; operand 0, which the op calls
 * value, has rank 2 to 5. */
adj_status check_channels(const adj_node *n, const char *value, int64_t format);
/* adj_op.show of attributes that begin with the format. */
void format_show(const void *attrs, FILE *f);

#endif
