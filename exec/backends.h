/* backends.h - which backend computes what, and by which of its kernels. */
#ifndef ADJ_BACKENDS_H
#define ADJ_BACKENDS_H

#include "candidate.h"
#include "plan.h"

/* backends.c: which backends compute an op. Reads the option string; opens a backend when it is
 * first needed. */
adj_status select_backends(adj_exec *e, const adj_exec_opts *o);
/* The k-th backend to query for op, or NONE. */
int backend_for(const adj_exec *e, const adj_op *op, int k);
adj_status open_backend(adj_exec *e, int backend);
/* Opens it, too, if it is not known not to be possible. 0: it cannot be opened, which is in
 * e->warning if nothing else is there; or there is no memory, which is an error. */
int can_open(adj_exec *e, int backend);
/* Those that want to be called after every step, though they may compute none here: a process that
 * evaluates answers the others as well as one that trains. */
adj_status open_progressing(adj_exec *e);
/* Is it among those that are queried for op? */
int may_compute(const adj_exec *e, int backend, const adj_op *op);
/* Is a backend before the last one, the reference, queried for op? of: the executor. */
int has_backend(void *of, const adj_op *op);

/* select_kernel.c: prepares the described step for the kernel that is to compute it.
 * ADJ_ENOKERNEL: nobody computes these nodes together. */
adj_status select_kernel(adj_exec *e, step *s, const node_group *g);
/* The same without tuning: what is estimated to take the least time. */
adj_status select_by_estimate(adj_exec *e, step *s, const node_group *g);
/* Is it the last one, for what no other computes? */
int is_fallback(const adj_exec *e, int backend);
/* Has a backend before the last one, the reference, a kernel for n alone? of: the executor. May be
 * called before there is a plan; then 0 also when that fails, which the executor records. */
int has_non_reference_kernel(void *of, const adj_node *n);
/* The next kernel that may compute the group, of the next backend if this one has none left; a
 * candidate without a backend is before the first. ADJ_ENOKERNEL: there is none left. */
adj_status next_group_kernel(adj_exec *e, const node_group *g, candidate *c);
/* Prepares the candidate into the described step, which then has its kernel. With same_bits it is
 * the kernel's first one from c->number on that does not add up by threads. */
adj_status prepare_step(adj_exec *e, step *s, candidate *c);
void drop_prepared(adj_exec *e, const step *s);
/* Why the first backend does not compute the step: copied. */
adj_status set_why(adj_exec *e, step *s, const char *why);

/* tune.c: the fastest candidate, timed, from the file or from a selection. tune_open and tune_close
 * surround planning; tune_close writes the file and may be called in every case. tune_open requires
 * groups. */
adj_status tune_open(adj_exec *e, const adj_exec_opts *o);
/* Selects the fastest candidate by timing; ADJ_ENOKERNEL if there is none, or no time to find it.
 */
adj_status tune_group(adj_exec *e, step *s, const node_group *g);
void tune_close(adj_exec *e);

#endif
