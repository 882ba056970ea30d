/* run.h - runs steps, and declares the checks of a plan and of a run. */
#ifndef ADJ_RUN_H
#define ADJ_RUN_H

#include "exec.h"

/* ---- run.c ---- */

/* Runs a step's kernel, after the options' before_kernel. */
adj_status run_kernel(const adj_exec *e, const step *s, const adj_call *call);
/* Runs one step on the present contents of its operands. */
adj_status run_step(adj_exec *e, const step *s);
/* Calls progress() of the backends between steps, which advances pending operations and responds
 * to other processes. */
void progress_backends(const adj_exec *e);

/* ---- verify.c: the proof that a plan computes its graph ---- */

/* Fails with ADJ_EBACKEND if the proof fails; the message has the step and the values.
 * Requires: a bound plan. */
adj_status verify_plan(adj_exec *e);

/* ---- canary.c: guard words before and after every slot ---- */

enum { CANARY = 64 }; /* bytes on each side of a slot */
/* Writes the guard words of the slots whose lifetime begins at step; NONE: of kept slots. */
void draw_canaries(const plan *p, int step);
adj_status check_canaries(adj_exec *e, int step);

#endif
