/* select_kernel.h - selects the kernel that computes a group, by its estimate or by timing (tune/).
 */
#ifndef ADJ_SELECT_KERNEL_H
#define ADJ_SELECT_KERNEL_H

#include "candidate.h"
#include "planning.h"

/* Prepares the described step for the kernel that is to compute it. ADJ_ENOKERNEL: no backend
 * computes these nodes together. */
adj_status select_kernel(adj_exec *e, step *s);
/* Prepares it, without tuning, for the kernel that is estimated to take the least time. */
adj_status select_by_estimate(adj_exec *e, step *s);
/* True if a backend before the last one, the reference, has a kernel for n alone. of: the executor.
 * May be called before there is a plan; then 0 also when that fails, which the executor records. */
int has_non_reference_kernel(void *of, const adj_node *n);
/* Advances to the next kernel that may compute the step, of the next backend if this one has none
 * left; a candidate without a backend is before the first. ADJ_ENOKERNEL: there is none left. */
adj_status next_group_kernel(adj_exec *e, const step *s, candidate *c);
/* Prepares the candidate into the described step, which then has its kernel. With same_bits it is
 * the kernel's first one from c->number on that does not add up by threads. */
adj_status prepare_step(adj_exec *e, step *s, candidate *c);
/* Drops what its kernel, or its backend for a reorder, has prepared. */
void drop_step(adj_exec *e, const step *s);
/* Copies why the first backend does not compute the step. */
adj_status set_why(adj_exec *e, step *s, const char *why);

/* ---- tune/tune.c ---- */

/* Reads the selection and the tune file. Requires: groups. */
adj_status tune_open(adj_exec *e);
/* Selects the fastest candidate by timing; ADJ_ENOKERNEL if there is none, or no time to find it.
 */
adj_status tune_group(adj_exec *e, step *s);
/* Writes the file; may be called in every case after planning. */
void tune_close(adj_exec *e);

#endif
