/* backends.h - selects and opens the backends that compute each op. */
#ifndef ADJ_BACKENDS_H
#define ADJ_BACKENDS_H

#include "graph/op.h"

/* Reads the option string: which backends compute which op. */
adj_status select_backends(adj_exec *e);
/* Returns the k-th backend to query for op, or NONE. */
int backend_for(const adj_exec *e, const adj_op *op, int k);
/* True if it is among those that are queried for op. */
int may_compute(const adj_exec *e, int backend, const adj_op *op);
/* True if a backend before the last one, the reference, is queried for op. of: the executor. */
int has_backend(void *of, const adj_op *op);
/* True if it is the last of several, the reference, for what no other computes. */
int is_fallback(const adj_exec *e, int backend);
/* Opens backend i, unless it is open; a spare one, which the plan can do without, unless that has
 * failed before. 0: it cannot be opened, which is an error, of a spare one a warning. */
int open_backend(adj_exec *e, int i, int is_spare);
/* Opens those that want to be called after every step, though they may compute none here: a process
 * that evaluates answers the others as well as one that trains. */
adj_status open_progressing(adj_exec *e);

#endif
