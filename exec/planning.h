/* planning.h - data that only planning needs: the nodes of each step before it is planned, and
 * properties of the graph. Freed when the plan is complete. */
#ifndef ADJ_PLANNING_H
#define ADJ_PLANNING_H

#include "exec.h"

typedef struct tuner tuner;

typedef struct { /* the nodes of one step before it is planned, in id order */
    int n;       /* 0: nothing is left, as another group has taken them as its epilogue (plan.c) */
    const adj_node **node;
    const adj_kernel *kernel; /* kernel whose match proposed the group; NULL for a single node */
} node_group;

struct planning {
    region region; /* memory of this struct and of the planning stages */
    int n_root;    /* nodes that the private graph keeps: fetches, next values, assigned leaves */
    const adj_node **root;
    adj_uses *uses;            /* by id */
    const adj_node **proposed; /* room for the nodes that a match proposes */
    int n_group;
    node_group *group;                  /* in the order they run */
    int *group_of;                      /* by id: the node's group; not of leaves */
    int max_step, max_buffer, max_slot; /* room in the plan's arrays */
    int *first_buffer;                  /* by id: head of the value's buffers, or NONE */
    char *is_invariant;                 /* by id; NULL: not found yet */
    tuner *tuner;                       /* NULL: no tuning */
};

/* Returns zeroed memory that is freed when the plan is complete; NULL: ADJ_ENOMEM is recorded. */
void *planning_alloc(adj_exec *e, size_t count, size_t size);

/* ---- group.c ---- */

/* Divides the nodes into groups, one for each step, and orders them. Requires: graph, backends. */
adj_status form_groups(adj_exec *e);

/* ---- plan.c ---- */

/* Selects kernels, layouts and reorders for every group in order. Requires: groups, leaves. */
adj_status plan_steps(adj_exec *e);
/* Allocates arrays for n_in operands and n_out results of s, in r. */
adj_status alloc_operands(adj_exec *e, region *r, step *s, int n_in, int n_out);
/* Returns a new buffer for value in layout (of backend; NULL: plain), or NONE if that failed. */
int new_buffer(adj_exec *e, const adj_node *value, const adj_layout *layout, int backend);
/* Returns a new slot, not yet used by a step, or NONE if that failed. */
int new_slot(adj_exec *e, size_t bytes);
/* Returns the buffer that holds value in layout, or NONE if there is none yet. */
int find_buffer(const adj_exec *e, const adj_node *value, const adj_layout *layout);
/* Returns the buffer that a reorder of value reads, the plain one if it exists; NONE: value is not
 * computed yet. */
int source_buffer(const adj_exec *e, const adj_node *value);

#endif
