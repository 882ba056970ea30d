/* invariant.h - values that stay the same from run to run: see invariant.c. */
#ifndef ADJ_INVARIANT_H
#define ADJ_INVARIANT_H

#include "plan.h"

/* True if one of n nodes is collective: all processes compute it together. Such a node is computed
 * in every run, and no process may time it by itself. */
int has_collective(int n, const adj_node *const node[]);
/* Finds the values that are computed only when a parameter has changed. Requires: graph, leaves,
 * updates. */
adj_status find_invariant_values(adj_exec *e);
/* True if value is one of them; false before find_invariant_values. */
int is_invariant(const adj_exec *e, const adj_node *value);
/* Finds the invariant steps and puts them first. Requires: all steps. */
adj_status plan_invariants(adj_exec *e);
/* Returns a number that changes when a leaf that invariant steps may read is set. */
uint64_t invariant_version(const adj_exec *e);

#endif
