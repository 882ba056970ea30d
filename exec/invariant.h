/* invariant.h - values that stay the same from run to run: see invariant.c. */
#ifndef ADJ_INVARIANT_H
#define ADJ_INVARIANT_H

#include "plan.h"

/* True if one of n nodes runs only where all processes run it. Such a node takes part in every run,
 * whatever has changed in this one, and no process may time it alone. */
int has_collective(int n, const adj_node *const node[]);
/* Finds the values that are computed only when a parameter has changed. Requires: graph, leaves,
 * updates. */
adj_status find_invariant_values(adj_exec *e);
/* True if value is one of them; 0 before they are found. */
int is_invariant(const adj_exec *e, const adj_node *value);
/* Decides for a step that reads and writes known buffers, while planning. */
void find_invariance(const plan *p, step *s);
/* Puts the invariant steps first. Requires: all steps. */
adj_status plan_invariants(adj_exec *e);
/* Returns another number whenever a leaf has changed that invariant steps may read. */
uint64_t invariant_version(const adj_exec *e);

#endif
