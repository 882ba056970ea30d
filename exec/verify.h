/* verify.h - the proof that a plan computes its graph: see verify.c. */
#ifndef ADJ_VERIFY_H
#define ADJ_VERIFY_H

#include "exec.h"

/* Fails with ADJ_EBACKEND if the proof fails; the message has the step, the values and the bytes.
 * Requires: a bound plan. */
adj_status verify_plan(adj_exec *e);

#endif
