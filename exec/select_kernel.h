/* select_kernel.h - selects the backends that may compute each op, and the kernel that computes a
 * group, by its estimate or by timing (tune/). */
#ifndef ADJ_SELECT_KERNEL_H
#define ADJ_SELECT_KERNEL_H

#include "candidate.h"
#include "planning.h"

/* ---- backends ---- */

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
/* Writes the backend's version and instruction set, such as "2.6.3 avx512_core"; "* *": unknown. */
void describe_backend(const adj_backend *b, char *text, size_t size);
/* Opens the backends with progress(), even if they compute no node of this plan: a process that
 * only evaluates must respond to the others, too. */
adj_status open_progressing(adj_exec *e);

/* ---- kernels ---- */

/* Selects the kernel of the described step and prepares it. ADJ_ENOKERNEL: no backend computes
 * these nodes together. */
adj_status select_kernel(adj_exec *e, step *s);
/* Selects the kernel with the least estimated time and prepares it. */
adj_status select_by_estimate(adj_exec *e, step *s);
/* True if a backend before the last one, the reference, has a kernel for n by itself. of: the
 * executor, which may have no plan yet. An error is recorded by the executor and counts as false.
 */
int has_non_reference_kernel(void *of, const adj_node *n);
/* Advances to the next kernel that may compute the step, of this backend or the next one; a
 * candidate without a backend stands before the first kernel. ADJ_ENOKERNEL: no kernel is left. */
adj_status next_group_kernel(adj_exec *e, const step *s, candidate *c);
/* Prepares the candidate for the described step and sets the step's kernel. With same_bits it takes
 * the first candidate from c->number on whose sums do not depend on threads. */
adj_status prepare_step(adj_exec *e, step *s, candidate *c);
/* Frees the state that the kernel, or the backend of a reorder, has prepared. */
void drop_step(adj_exec *e, const step *s);
/* Sets the reason why the first backend does not compute the step, copying the text. */
adj_status set_why(adj_exec *e, step *s, const char *why);

/* ---- tune/tune.c ---- */

/* Reads the selection and the tune file. Requires: groups. */
adj_status tune_open(adj_exec *e);
/* Selects the fastest candidate by timing; ADJ_ENOKERNEL if there is none, or no time to find it.
 */
adj_status tune_group(adj_exec *e, step *s);
/* Writes the tune file if the table has changed. Called after planning, also after a failure. */
void tune_close(adj_exec *e);

#endif
