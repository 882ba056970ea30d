/* backends.h - selects and opens the backends that compute each op. */
#ifndef ADJ_BACKENDS_H
#define ADJ_BACKENDS_H

#include "graph/op.h"

/* Reads the option string, which assigns ops to backends. */
adj_status select_backends(adj_exec *e);
/* Returns the first backend to try for op; those after it in the list follow. */
int first_backend(const adj_exec *e, const adj_op *op);
/* True if the backend is among those to try for op. */
int may_compute(const adj_exec *e, int backend, const adj_op *op);
/* True if a backend before the last one, the reference, may compute op. of: the executor. */
int has_backend(void *of, const adj_op *op);
/* True if the backend is the last of several: the reference, for nodes that no other computes. */
int is_fallback(const adj_exec *e, int backend);
/* Opens backend i unless it is open. Returns 0 if it cannot be opened, with an error, or with a
 * warning for a spare backend, which the plan can do without. A spare backend that failed to open
 * is not tried again. */
int open_backend(adj_exec *e, int i, int is_spare);
/* Writes the backend's version and instruction set, such as "2.6.3 avx512_core"; "* *": unknown. */
void describe_backend(const adj_backend *b, char *text, size_t size);
/* Opens the backends with progress(), even if they compute no node of this plan: a process that
 * only evaluates must respond to the others, too. */
adj_status open_progressing(adj_exec *e);

#endif
