/* inspect.h - access to an executor's plan beyond the public API, for check/. */
#ifndef ADJ_INSPECT_H
#define ADJ_INSPECT_H

#include "graph/graph.h"

/* Returns the number of nodes of the executor's private graph. */
int exec_n_nodes(const adj_exec *e);
/* Sets step[id] to the step that computes the node with that id of the private graph; negative: no
 * step does. */
void exec_list_steps(const adj_exec *e, int step[]);
/* Returns a hash of the kernels with their shapes and layouts, independent of their order. */
uint64_t exec_hash_kernels(const adj_exec *e);
/* True if the last run failed because a kernel wrote outside its memory. */
int exec_was_overrun(const adj_exec *e);
/* True if the plan was refused because it does not compute its graph (verify.c): the plan is at
 * fault, and no kernel has run. */
int exec_has_wrong_plan(const adj_exec *e);
/* Transfers the private graph of an executor that will not run again to the caller, who frees it.
 * Sets image[id] to its node for the node with that id of the user's graph; NULL: not needed. */
adj_graph *exec_take_graph(adj_exec *e, const adj_node *image[]);

/* ---- check_sharing.c: values that differ when they share memory ---- */

typedef struct {
    const adj_node *reader; /* the first node with a different operand or result; NULL: a value
                               fetched at the end of the run differs */
    const adj_node
        *damaged; /* the different operand; NULL: the operands were equal, but not the result */
    const adj_node *taken_over; /* the operand whose memory holds the result, or NULL */
} exec_damage;

/* Runs the steps of two executors of one graph side by side, after equal numbers of runs on the
 * same values; they have the same kernels, and the second shares no memory. Returns 1 if a value
 * differs, with the first one in *d; 0 if none does; a negative number if the plans differ or a
 * step fails. Assigns no update. Nodes belong to the executors' private graphs. */
int exec_find_damage(adj_exec *shared, adj_exec *alone, exec_damage *d);

typedef struct {
    const adj_node *result, *operand; /* of the private graph */
    const char *impl;                 /* name of the implementation; owned by the executor */
} exec_false_alias;

/* Runs the steps again of an executor that has run and has no updates: for each operand that a
 * kernel claims it may overwrite, once on separate memory and once in place, even if the plan does
 * not use that. Both start with the operand's bytes, so that bytes that a kernel leaves unwritten,
 * such as the padding of a layout, are equal. Returns 1 if the bits differ, with the step in *f; 0
 * if none differ; a negative number when out of memory. */
int exec_find_false_alias(adj_exec *e, exec_false_alias *f);

/* ---- check_reorders.c ---- */

/* Checks each reorder of the plan. Returns 1 if one is wrong, and describes it in text; 0 if all
 * are right; a negative number when out of memory. */
int exec_find_wrong_reorder(const adj_exec *e, char *text, size_t size);

#endif
