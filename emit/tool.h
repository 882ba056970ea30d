/* tool.h - functions of emit/ for the tool and the checkers, besides those of adjoint_emit.h. */
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

/* compiled.c: returns the backend "emitted" for adj_exec_opts.backends, to be freed after the
 * executors that use it, or NULL when out of memory. Executors that use it must not run at the same
 * time. Without a C compiler it cannot be opened. */
ADJ_API adj_backend *adj_emitted_new(void);
ADJ_API void adj_emitted_free(adj_backend *b); /* b may be NULL */

#endif
