/* slices.h - groups of nodes that run over the batch in slices of a few images: all their nodes for
 * the first slice, then all for the next. What passes from node to node is in the cache then, and
 * only what enters and leaves the group passes memory: a convolution reads what the batch norm
 * before it has just written, and its result is summed up for the statistics of the next one.
 *
 * A slice is a graph and a plan of its own, one for each thread, made by the stages that make every
 * plan, for one thread; its images lie in the buffers of the plan that it is part of. So the
 * kernels are those of every backend, and none knows of slices. */
#ifndef ADJ_SLICES_H
#define ADJ_SLICES_H

#include "exec/exec.h"

typedef struct slices slices;

/* ---- find.c: which nodes, and how many images make a slice ---- */

typedef struct sliced_nodes {
    int n;
    const adj_node **node; /* in id order */
    int64_t batch, images; /* in all, and in a slice, of which the batch is a multiple */
    int pays;              /* slices are taken unasked: inference of much that is evenly cut */
    double tuned;          /* seconds of a run by which slices were taken; 0: they were not timed */
} sliced_nodes;

/* Lists what can be run so, in the executor's memory; no way leads from one node of a group to
 * another through nodes outside. With large only what may pay. Requires: graph, uses. */
adj_status find_sliced_nodes(adj_exec *e, int large, sliced_nodes **list, int *n);

/* Has operand k an image for each one of the batch? Else every slice reads all of it. */
int is_batch_operand(const adj_node *n, int k);
/* Is the result, of a node in such a list, one for each image? Else it is one for the batch. */
int is_batch_result(const adj_node *n);

/* ---- plan.c: a group's slices, one plan for each thread ---- */

/* To be dropped by the caller. NULL: they cannot be planned, or there is no memory, which is an
 * error of the executor's. */
slices *plan_slices(adj_exec *e, const adj_exec_opts *o, const sliced_nodes *nodes);
/* Lets s, which is described, be computed so; the caller keeps the slices. With in_plan s is a step
 * of e, whose storage may keep what follows from parameters alone; else each run computes it.
 * Returns the plan of the first thread's. */
const adj_exec *take_slices(const adj_exec *e, slices *of, step *s, int in_plan);
/* Lets what its slices keep between runs lie there in the plan's storage. Returns how many bytes;
 * 0: none, or the step has no slices. */
size_t keep_slices(const step *s, size_t at);
void drop_slices(slices *s);
/* The plan of the first thread's slice; NULL: the step has no slices. */
const adj_exec *plan_of_slice(const step *s);
/* Lets the slices' steps be timed. */
void time_slices(slices *of);
/* The k-th step of that plan, in all slices of the last run, but for its node. *value: what it
 * computes as a node of the graph that the slices' group is of; NULL: it is of slices alone. */
adj_step_info step_of_slices(const step *s, int k, const adj_node **value);
/* Did a kernel write outside its memory in the last run? */
int was_slice_overrun(const slices *s);

/* The backend that such steps are of; it is no choice of the options'. */
extern const adj_backend slices_backend;

#endif
