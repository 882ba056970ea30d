/* plan.h - the plan over the private graph.
 *
 * The plan is a list of steps. A step computes a group of nodes by one kernel, or reorders a value
 * into another layout, or copies one. What a step reads and writes are buffers: a value in a
 * layout. Buffers live in slots of memory, several in one slot one after the other (in place);
 * slots live in the arena, shared by lifetime, or are kept between runs. */
#ifndef ADJ_PLAN_H
#define ADJ_PLAN_H

#include "adjoint_ext.h"

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
    uint64_t *sums;  /* of what the last run read, then wrote, by in and out; NULL: none */
    double seconds;  /* of the last run, when profiled; 0: it was not needed */
    double tuned;    /* seconds by which it was selected; 0: by the estimate */
} step;

typedef struct {
    const adj_node *node; /* of the private graph */
    adj_node *user;       /* the same in the user's graph */
    int buffer;
    int is_assigned;  /* an update assigns it */
    uint64_t version; /* grows with every change; 0: never set */
} leaf;

typedef struct {
    int leaf;              /* index into leaves */
    const adj_node *value; /* computes the next value; of the private graph */
    int next;              /* buffer that holds it, once it is planned; NONE: not yet */
    int in_place;          /* the step that computes it writes into the leaf */
} update;

typedef struct { /* the nodes of one step before it is planned, in id order */
    int n;       /* 0: another group's kernel computes them, too (epilogue.c) */
    const adj_node **node;
    const adj_kernel *kernel; /* whose match proposed it; NULL for a single node */
    int backend;
} node_group;

/* ---- the stages that make one ---- */

/* group.c: which nodes one step computes, and the order of steps. Requires: graph, backends. */
adj_status form_groups(adj_exec *e, int n_root, const adj_node *const root[]);

/* plan.c: kernels, layouts and reorders for every group in order. Requires: groups, leaves. */
adj_status plan_steps(adj_exec *e);
/* epilogue.c: lets the selected kernel compute nodes of later groups, from number `next` on, along
 * with its own, if it can; those groups are empty then, or keep the second of two nodes. */
adj_status take_epilogue(adj_exec *e, const node_group *g, int next, step *planned);
/* The group as a kernel gets it, and arrays for layouts. Before there is a plan: of a single
 * node. */
adj_status describe_step(adj_exec *e, const node_group *g, step *s);
/* Has no value that leaves it an element? */
int is_empty(const adj_group *g);
/* A buffer for value in layout (of backend; NULL: plain); NONE: failed. */
int new_buffer(adj_exec *e, const adj_node *value, const adj_layout *layout, int backend, int kept);

/* Moves b, and all buffers that share its slot, into the slot of `into`. */
void join_slots(adj_exec *e, int b, int into);

size_t value_bytes(const adj_exec *e, adj_type type, const adj_layout *layout, int backend);
const char *layout_text(const adj_exec *e, const adj_layout *layout, int backend);
/* The buffer that holds value in layout; NONE: there is none yet. */
int find_buffer(const adj_exec *e, const adj_node *value, const adj_layout *layout);
/* The one that a reorder starts from: plain if there is one; NONE: value is not computed yet. */
int source_buffer(const adj_exec *e, const adj_node *value);

/* invariant.c: does one of them run only where all processes run it? They take part in every run,
 * whatever has changed in this one, and no process may time it alone. */
int has_collective(int n, const adj_node *const node[]);
/* What is computed only when a parameter has changed. Requires: graph, leaves,
 * updates. */
adj_status find_invariant_values(adj_exec *e);
/* 0 as well before they are found. */
int is_invariant(const adj_exec *e, const adj_node *value);
/* While planning: of a step that reads and writes known buffers. */
void find_invariance(adj_exec *e, step *s);
/* Requires: all steps. Puts the invariant ones first. */
adj_status plan_invariants(adj_exec *e);
/* Another number whenever a leaf has changed that invariant steps may read. */
uint64_t invariant_version(const adj_exec *e);

/* memory_need.c: ADJ_ENOMEM where the bytes obviously cannot be had, and the same of all values
 * that have to be there at one time. Requires: groups. */
adj_status check_memory(adj_exec *e, size_t bytes);
adj_status check_values(adj_exec *e);

/* memory.c: lifetimes, what is computed in place, offsets in the arena. Requires: all steps. */
adj_status plan_memory(adj_exec *e);
/* place_by_time.c: gives n slots of the arena their offsets in the order of their first steps. Sets
 * the arena's size. Both lists hold the n slots; they are sorted by first and by last step. */
adj_status place_by_time(adj_exec *e, int n, slot *first[], slot *last[]);

/* inspect.c: adds up what a run reads and writes. Requires: all steps. */
adj_status count_moved_bytes(adj_exec *e);

#endif
