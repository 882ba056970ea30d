/* tool.h - functions of emit/ for the tool, besides those of adjoint_emit.h. */
#ifndef EMIT_TOOL_H
#define EMIT_TOOL_H

#include "adjoint_ext.h"

/* Checks that the names in a file may begin with the prefix; NULL: the default one. The message
 * begins with "not an identifier". */
ADJ_API adj_status adj_emit_check_prefix(const char *prefix, adj_error *error);

/* Rounds the filters that nodes of the graph read only as such, but not those that the updates
 * assign (NULL: none), to scale * q: integers of 8 bits with a scale for each output channel. q is
 * from -127 to 127, and the largest |w| of a channel has 127. */
ADJ_API adj_status adj_emit_round(adj_exec *e, const adj_updates *trained, adj_error *error);

#endif
