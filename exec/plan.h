/* plan.h - the plan over the private graph.
 *
 * The plan is a list of steps. A step computes a group of nodes by one kernel, or reorders a value
 * into another layout, or copies one. What a step reads and writes are buffers: a value in a
 * layout. Buffers live in slots of memory, several in one slot one after the other (in place);
 * slots live in the arena, shared by lifetime, or are kept between runs. */
#ifndef ADJ_PLAN_H
#define ADJ_PLAN_H

#include "graph/graph.h"

enum { NONE = -1 };

/* What a value follows from: leaves that change with the runs; only leaves that no update assigns
 * and that are no inputs; nothing at all. Of several operands the minimum counts. */
typedef enum { RUN_VARIANT, RUN_INVARIANT, CONSTANT } invariance;

typedef struct {
    size_t bytes;
    int last_read;         /* step that reads one of its buffers last; NONE: nobody */
    int first, last;       /* steps between which it holds something needed; NONE: unused */
    int kept;              /* outside the arena: its content outlives a run */
    int foreign;           /* kept, but not in the executor's memory: a constant's data */
    invariance invariance; /* of the values in it */
    size_t offset;         /* in the arena, or in the storage */
    char *data;
} slot;

typedef struct {
    const adj_node *value;
    const adj_layout *layout; /* NULL: plain */
    int backend;              /* whose layout it is; NONE for plain */
    int slot;
    int next;   /* another buffer of the same value, or NONE */
    int sharer; /* the next buffer in the same slot, in a ring: itself where it is the only one */
} buffer;

typedef enum { STEP_KERNEL, STEP_REORDER, STEP_COPY } step_kind;

typedef struct {
    step_kind kind;
    int backend;
    const adj_kernel *kernel;
    adj_group group;
    adj_prep prep;
    int *in, *out; /* buffers, as group.in and group.out; one each for reorders and copies */
    int n_in, n_out;
    int scratch;           /* slot, or NONE */
    invariance invariance; /* RUN_INVARIANT: it runs only when such a leaf has changed */
    adj_call call;
    const char *why; /* why a preferred backend does not compute it; NULL: it does */
    int sums;        /* of the checksums of in, then out: the first one's number */
    double tuned;    /* seconds by which it was selected; 0: by the estimate */
} step;

typedef struct {
    const adj_node *node; /* of the private graph */
    adj_node *user;       /* the same in the user's graph */
    int buffer;
    int is_assigned; /* an update assigns it */
} leaf;

typedef struct {
    int leaf;              /* index into leaves */
    const adj_node *value; /* computes the next value; of the private graph */
    int next;              /* buffer that holds it, once it is planned; NONE: not yet */
    int in_place;          /* the step that computes it writes into the leaf */
} update;

typedef struct { /* constant once it is complete */
    const adj_graph *user;
    int n_user;       /* nodes that the user's graph had */
    adj_graph *graph; /* private */
    adj_node **image; /* by the user's id: the private graph's node; NULL: not part of this plan */
    int n_step, n_buffer, n_slot, n_leaf, n_fetch, n_update;
    int n_invariant; /* steps, the first ones */
    int n_sum;       /* checksums of all steps */
    step *step;
    buffer *buffer;
    slot *slot;
    leaf *leaf;
    int *leaf_of;             /* by id of the private graph: index into leaf, or NONE */
    int *fetch;               /* buffers, as the options' fetch */
    const adj_node **fetched; /* the same, as nodes of the user's graph */
    update *update;
} plan;

#endif
