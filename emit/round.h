/* round.h - filters as integers of 8 bits with a scale for each output channel: w = scale * q,
 * where q is from -127 to 127 and the largest |w| of a channel has 127. */
#ifndef EMIT_ROUND_H
#define EMIT_ROUND_H

#include "adjoint_ext.h"

/* Rounds the filters that nodes of the graph read only as such, but not those that the updates
 * assign (NULL: none), to scale * q. */
ADJ_API adj_status adj_emit_round(adj_exec *e, const adj_updates *trained, adj_error *error);

#endif
