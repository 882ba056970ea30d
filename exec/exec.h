/* exec.h - an executor's inside: the private graph, the plan over it, and the memory the plan runs
 * in.
 *
 * The plan is a list of steps. A step computes a group of nodes by one kernel, or reorders a value
 * into another layout, or copies one. What a step reads and writes are buffers: a value in a
 * layout. Buffers live in slots of memory, several in one slot one after the other (in place);
 * slots live in the arena, shared by lifetime, or are kept between runs. */
#ifndef ADJ_EXEC_H
#define ADJ_EXEC_H

#include "candidate.h"
#include "clock.h"
#include "graph/graph.h"

enum { NONE = -1, MAX_BACKENDS = 8 };

/* What a value follows from: leaves that change with the runs; only leaves that no update assigns
 * and that are no inputs; nothing at all. Of several operands the least counts. */
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
    int next; /* another buffer of the same value, or NONE */
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
    double seconds;  /* of the last run, when profiled; 0: it was not needed */
    double tuned;    /* seconds by which it was selected; 0: by rank */
} step;

typedef struct {
    const adj_node *node; /* of the private graph */
    adj_node *user;       /* the same in the user's graph */
    int buffer;
    uint64_t version; /* grows with every change; 0: never set */
} leaf;

typedef struct {
    int leaf;     /* index into leaves */
    int next;     /* buffer that holds the next value */
    int in_place; /* the step that computes it writes into the leaf */
} update;

typedef struct { /* "op=backend" of the options */
    const adj_op *op;
    int backend;
} choice;

typedef struct { /* the nodes of one step before it is planned, in id order */
    int n;
    const adj_node **node;
    const adj_kernel *kernel; /* whose match proposed it; NULL for a single node */
    int backend;
} node_group;

typedef struct tuner tuner;

typedef enum { NOT_RUN, RUN_COMPLETED, RUN_FAILED } run_state;

struct adj_exec {
    region region;
    adj_status status;
    int n_user; /* nodes that the user's graph had */
    char message[MESSAGE];
    char warning[MESSAGE];
    const adj_graph *user;
    adj_graph *graph;
    adj_node **image; /* by the user's id; NULL: not part of this executor */

    int threads, profile, canaries, no_fusion;
    adj_math math; /* as in the options */
    int n_choice;
    choice *choice;
    const char *quarantine;             /* as in the options */
    const char *impl;                   /* wanted in an implementation's name; NULL: any */
    int n_backend, fallback, preferred; /* indices into backend */
    const adj_backend *backend[MAX_BACKENDS];
    void *opened[MAX_BACKENDS];
    char is_open[MAX_BACKENDS];

    int n_group;
    node_group *group;         /* in the order they run */
    adj_uses *uses;            /* by id */
    const adj_node **proposed; /* room for what a match proposes */
    tuner *tuner;              /* while planning; NULL: no tuning */
    int n_step, n_buffer, n_slot, n_leaf, n_fetch, n_update;
    int n_fixed;              /* steps, the first ones */
    uint64_t fixed_seen;      /* fixed_version when they ran; 0: never */
    int max_step, max_buffer; /* room in the arrays */
    step *step;
    buffer *buffer;
    int *first_buffer; /* by id: head of the value's buffers, or NONE */
    slot *slot;
    leaf *leaf;
    int *leaf_of;             /* by id: index into leaf, or NONE */
    int *fetch;               /* buffers, as the options' fetch */
    const adj_node **fetched; /* the same, as nodes of the user's graph */
    update *update;

    char *arena, *storage;
    adj_exec_info info;
    run_state last_run;
    int overrun; /* the last run failed because a kernel wrote outside its memory */
};

/* Records the executor's first error. */
adj_status set_error(adj_exec *e, adj_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A call that failed on an executor that stays usable: the newest message is kept. */
adj_status call_error(adj_exec *e, adj_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static inline char *leaf_data(const adj_exec *e, const leaf *l)
{
    return e->slot[e->buffer[l->buffer].slot].data;
}
/* Inputs are not, at first; one without elements needs no value. */
static inline int is_set(const adj_exec *e, const leaf *l)
{
    return l->version > 0 || e->slot[e->buffer[l->buffer].slot].bytes == 0;
}
/* The call of a prepared step, but for its operands, results and message. */
static inline void bind_call(const adj_exec *e, step *s, void *scratch)
{
    s->call.group = &s->group;
    s->call.state = s->prep.state;
    s->call.scratch = scratch;
    s->call.threads = e->threads;
}
/* Zeroed memory that lives as long as the executor; NULL and ADJ_ENOMEM recorded when there is
 * none. */
void *exec_alloc(adj_exec *e, size_t count, size_t size);

/* build.c: everything is planned and allocated. */
adj_status build_executor(adj_exec *e, const adj_graph *g, const adj_exec_opts *o);

/* options.c: adds what ADJOINT_PLAN says. */
adj_status read_environment(adj_exec *e, adj_exec_opts *o);

/* backends.c: which backends compute an op. Reads the option string; opens a backend when it is
 * first needed. */
adj_status select_backends(adj_exec *e, const adj_exec_opts *o);
/* The k-th backend to query for op, or NONE. */
int backend_for(const adj_exec *e, const adj_op *op, int k);
adj_status open_backend(adj_exec *e, int backend);
/* Is a backend before the last one, the reference, queried for op? of: the executor. */
int has_backend(void *of, const adj_op *op);

/* Is it among those that are queried for op? */
int may_compute(const adj_exec *e, int backend, const adj_op *op);

/* group.c: which nodes one step computes, and in what order steps run. Requires: graph, backends.
 */
adj_status form_groups(adj_exec *e, int n_root, const adj_node *const root[]);

/* plan.c: kernels, layouts and reorders for every group in order. Requires: groups, leaves. */
adj_status plan_steps(adj_exec *e);
/* The group as a kernel is told of it, and arrays for layouts. Before there is a plan: of a single
 * node. */
adj_status describe_step(adj_exec *e, const node_group *g, step *s);
/* A buffer for value in layout (of backend; NULL: plain); NONE: failed. */
int new_buffer(adj_exec *e, const adj_node *value, const adj_layout *layout, int backend, int kept);

size_t value_bytes(const adj_exec *e, adj_type type, const adj_layout *layout, int backend);
const char *layout_text(const adj_exec *e, const adj_layout *layout, int backend);
/* The buffer that holds value in layout; NONE: there is none yet. */
int find_buffer(const adj_exec *e, const adj_node *value, const adj_layout *layout);

/* invariant.c: what is computed only when a parameter has changed. Before planning: */
void find_fixed_leaves(adj_exec *e);
/* While planning: of a step that reads and writes known buffers; of a value that has one. */
void find_basis(adj_exec *e, step *s);
int is_fixed(const adj_exec *e, const adj_node *value);
/* Requires: all steps. Puts the fixed ones first. */
adj_status plan_fixed(adj_exec *e);
/* Another number whenever a leaf has changed that fixed steps may read. */
uint64_t fixed_version(const adj_exec *e);

/* select_kernel.c: prepares the described step for the kernel that is to compute it.
 * ADJ_ENOKERNEL: nobody computes these nodes together. */
adj_status select_kernel(adj_exec *e, step *s, const node_group *g);
/* Has a backend before the last one, the reference, a kernel for n alone? of: the executor. May be
 * called before there is a plan; then 0 also when that fails, which the executor records. */
int has_non_reference_kernel(void *of, const adj_node *n);
/* The next kernel that may compute the group, of the next backend if this one has none left; a
 * candidate without a backend is before the first. ADJ_ENOKERNEL: there is none left. */
adj_status next_group_kernel(adj_exec *e, const node_group *g, candidate *c);
/* Prepares the candidate into the described step, which then has its kernel. */
adj_status prepare_step(adj_exec *e, step *s, candidate *c);
void drop_prepared(adj_exec *e, const step *s);
/* Why the first backend does not compute the step: copied. */
adj_status set_why(adj_exec *e, step *s, const char *why);

/* tune.c: the fastest candidate, timed or remembered. tune_open and tune_close surround planning;
 * tune_close writes the file and may be called in every case. */
adj_status tune_open(adj_exec *e, const adj_exec_opts *o);
/* As select_kernel; ADJ_ENOKERNEL: there are not two candidates, or there is no time for them. */
adj_status tune_group(adj_exec *e, step *s, const node_group *g);
void tune_close(adj_exec *e);

/* canary.c: words before and after every slot, that no kernel may touch. */
enum { CANARY = 64 };                            /* bytes on each side */
void draw_canaries(const adj_exec *e, int step); /* NONE: those of kept slots */
adj_status check_canaries(adj_exec *e, int step);

/* memory_need.c: ADJ_ENOMEM where the bytes obviously cannot be had, and the same of all values
 * that have to be there at one time. Requires: groups. */
adj_status check_memory(adj_exec *e, size_t bytes);
adj_status check_values(adj_exec *e);

/* memory.c: lifetimes, what is computed in place, offsets in the arena. Requires: all steps. */
adj_status plan_memory(adj_exec *e);

#endif
