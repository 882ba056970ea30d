/* compiled.h - emitted functions as a backend, for the checkers.
 *
 * The backend "emitted" computes each group of nodes by the function that adj_emit writes for it.
 * Functions are compiled by `cc -std=c99 -O2`, all that are new at once, and each call is a process
 * of its own, in which operands and results are allocated with their exact sizes and results begin
 * as NaN. Groups, results in place and scratch are those of adj_emit's plans. */
#ifndef EMIT_COMPILED_H
#define EMIT_COMPILED_H

#include "adjoint_ext.h"

/* Returns a backend for adj_exec_opts.backends, to be freed after the executors that use it, or
 * NULL when out of memory. Executors that use it must not run at the same time. Without a C
 * compiler it cannot be opened. */
ADJ_API adj_backend *adj_emitted_new(void);
ADJ_API void adj_emitted_free(adj_backend *b); /* b may be NULL */

#endif
