/* memory.h - places the values of a plan in memory, and checks that there is enough of it. */
#ifndef ADJ_MEMORY_H
#define ADJ_MEMORY_H

#include "plan.h"

/* ---- memory.c ---- */

/* Determines lifetimes, in-place results and offsets in the arena. Requires: all steps. */
adj_status plan_memory(adj_exec *e);
/* True if s may compute result `out` in the memory of operand k, provided that no later step needs
 * the operand. */
int may_take_over(const plan *p, const step *s, int k, int out);

/* Fails with ADJ_ENOMEM if more bytes are needed than are available. */
adj_status check_memory(adj_exec *e, size_t bytes);
/* Calls check_memory for leaves and fetched values, which share no memory in any plan. Requires:
 * leaves. */
adj_status check_values(adj_exec *e);

/* ---- place_by_time.c ---- */

/* Gives n slots of the arena their offsets in the order of their first steps, and sets the arena's
 * size. Both lists hold the n slots; they are sorted by first and by last step. */
adj_status place_by_time(adj_exec *e, int n, slot *first[], slot *last[]);

#endif
