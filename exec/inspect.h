/* inspect.h - access to an executor's plan beyond the public API, for check/. */
#ifndef ADJ_INSPECT_H
#define ADJ_INSPECT_H

#include "graph/graph.h"

/* Returns the number of nodes of the executor's private graph. */
int exec_n_nodes(const adj_exec *e);
/* Writes step[id of a node of the private graph]: the step that computes it; negative: none does.
 */
void exec_list_steps(const adj_exec *e, int step[]);
/* Returns a hash of which kernels run on which shapes and layouts, in any order. */
uint64_t exec_hash_kernels(const adj_exec *e);
/* True if the last run failed because a kernel wrote outside its memory. */
int exec_was_overrun(const adj_exec *e);
/* True if no executor came about because its plan does not compute what the graph says (verify.c):
 * the plan is at fault, and no kernel has run. */
int exec_has_wrong_plan(const adj_exec *e);
/* Hands over the private graph, to be freed by the caller, of an executor that will not run again,
 * and image[id of a node of the user's graph], its node there; NULL: dead. */
adj_graph *exec_take_graph(adj_exec *e, const adj_node *image[]);

/* ---- sharing.c: values that are others where they share memory ---- */

typedef struct {
    const adj_node *reader;  /* the first node that read, or gave, something else; NULL: the run's
                                end did, where results are fetched */
    const adj_node *damaged; /* what it read; NULL: its operands were right, its result is not */
    const adj_node *taken_over; /* the operand that its result is computed in place of, or NULL */
} exec_damage;

/* Compares the last runs, with checksums, of two executors of one graph by the same kernels, after
 * as many runs on the same values; the second shares no memory. 1: they differ, and *d says where
 * first; 0: they do not; negative: their plans differ. Nodes are of the executors' own graphs. */
int exec_find_damage(const adj_exec *shared, const adj_exec *alone, exec_damage *d);

/* ---- reorders.c ---- */

/* Runs each reorder of the plan, there and back, or through its reader. 1: one is wrong, and text
 * says which; 0: none is; negative: no memory. */
int exec_find_wrong_reorder(const adj_exec *e, char *text, size_t size);

/* ---- in_place.c: results that are others where they are computed in place ---- */

typedef struct {
    const adj_node *result, *operand; /* of the private graph */
    const char *impl;                 /* the kernel's; the executor's */
} exec_false_alias;

/* Runs the steps of an executor that has run and has no updates again, those that may be computed
 * in place once for each operand so: whatever the plan does, every claim is tried. 1: a step gives
 * other bits than in memory of its own; *f says which. 0: none does; negative: no memory. */
int exec_find_false_alias(adj_exec *e, exec_false_alias *f);

#endif
