/* run.h - runs steps, and declares the checks that accompany a run. */
#ifndef ADJ_RUN_H
#define ADJ_RUN_H

#include "exec.h"

/* ---- run.c ---- */

/* Runs a step's kernel, after the options' before_kernel. */
adj_status run_kernel(const adj_exec *e, const step *s, const adj_call *call);
/* Runs one step, on whatever its operands are. */
adj_status run_step(adj_exec *e, const step *s);
/* Lets backends go on with what they have started, and answer other processes, between steps. */
void progress_backends(const adj_exec *e);

/* ---- canary.c: words before and after every slot, that no kernel may touch ---- */

enum { CANARY = 64 }; /* bytes on each side of a slot */
/* Writes those of the slots that step uses first; NONE: of kept slots. */
void draw_canaries(const plan *p, int step);
adj_status check_canaries(adj_exec *e, int step);

/* ---- sharing.c: checksums of what steps read and write, for inspect.h's exec_find_damage ---- */

/* Adds those of operands before a step, of results after it, and of what is read after the last
 * step before the updates. */
void sum_operands(const adj_exec *e, const step *s);
void sum_results(const adj_exec *e, const step *s);
void sum_end(const adj_exec *e);

#endif
