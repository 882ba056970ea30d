/* verify.h - the proof that a plan computes its graph: see verify.c. */
#ifndef ADJ_VERIFY_H
#define ADJ_VERIFY_H

#include "exec.h"

/* Fails with ADJ_EBACKEND where the proof does: which step, which values, which bytes. Requires: a
 * bound plan. */
adj_status verify_plan(adj_exec *e);

#endif
