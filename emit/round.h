/* round.h - filters as integers of 8 bits with a scale for each output channel: w = scale * q,
 * where q is from -127 to 127 and the largest |w| of a channel has 127. */
#ifndef EMIT_ROUND_H
#define EMIT_ROUND_H

#include "adjoint_ext.h"

/* The output channels of a filter: element i belongs to channel i / run % n. */
typedef struct {
    int64_t n, run;
} channels;
/* Returns the channels of operand 1 of a convolution or matrix product of the forward pass; of
 * other nodes n is 0. */
channels filter_channels(const adj_node *n);

/* Computes the scales [c.n] and the integers of n weights. A channel of zeros has scale 0. */
void round_weights(channels c, int64_t n, const float w[], float scale[], int8_t q[]);

/* Rounds the filters that nodes of the graph read only as such, but not those that the updates
 * assign (NULL: none), to scale * q. */
ADJ_API adj_status adj_emit_round(adj_exec *e, const adj_updates *trained, adj_error *error);

#endif
