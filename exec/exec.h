/* exec.h - an executor's inside: the private graph, its backends, the plan, and the memory that the
 * plan runs in. */
#ifndef ADJ_EXEC_H
#define ADJ_EXEC_H

#include "base/clock.h"
#include "graph/graph.h"
#include "plan.h"
#include "roofline.h"

enum { MAX_BACKENDS = 8 };

typedef struct { /* "op=backend" of the options */
    const adj_op *op;
    int backend;
} op_backend;

typedef struct tuner tuner;

typedef enum { BACKEND_UNTRIED, BACKEND_OPEN, BACKEND_FAILED } backend_state;

typedef enum { NOT_RUN, RUN_COMPLETED, RUN_FAILED } run_state;

struct adj_exec {
    region region;
    adj_status status;
    int n_user; /* nodes that the user's graph had */
    char message[ADJ_MESSAGE];
    char warning[ADJ_MESSAGE];
    const char *selection; /* adj_exec_selection's */
    const adj_graph *user;
    adj_graph *graph;
    adj_node **image; /* by the user's id; NULL: not part of this executor */

    int threads, profile, canaries, no_fusion, no_sharing, checksums;
    int same_bits;     /* as in the options */
    roofline roofline; /* nominal */
    adj_math math;     /* as in the options */
    int n_op_backend;
    op_backend *op_backend;
    const char *quarantine; /* as in the options */
    void (*before_kernel)(void *user, const adj_node *first, const char *backend, const char *impl);
    void *kernel_user;                  /* before_kernel's */
    const char *impl;                   /* wanted in an implementation's name; NULL: any */
    int n_backend, fallback, preferred; /* indices into backend */
    const adj_backend *backend[MAX_BACKENDS + 1]; /* ended by NULL */
    void *opened[MAX_BACKENDS];
    backend_state state[MAX_BACKENDS];

    int n_group;
    node_group *group;         /* in the order they run */
    adj_uses *uses;            /* by id */
    const adj_node **proposed; /* room for what a match proposes */
    tuner *tuner;              /* while planning; NULL: no tuning */
    int n_step, n_buffer, n_slot, n_leaf, n_fetch, n_update;
    int n_invariant;          /* steps, the first ones */
    uint64_t invariant_seen;  /* invariant_version when they ran; 0: never */
    int max_step, max_buffer; /* room in the arrays */
    step *step;
    buffer *buffer;
    int *first_buffer;      /* by id: head of the value's buffers, or NONE */
    invariance *invariance; /* by id; NULL: not found yet */
    slot *slot;
    leaf *leaf;
    int *leaf_of;             /* by id: index into leaf, or NONE */
    int *fetch;               /* buffers, as the options' fetch */
    const adj_node **fetched; /* the same, as nodes of the user's graph */
    update *update;

    char *arena, *storage;
    adj_exec_info info;
    uint64_t *end_sums; /* of what was fetched and the next values, after the last run's steps;
                           NULL: none */
    run_state last_run;
    adj_status run_status; /* of that run */
    int overrun;           /* the last run failed because a kernel wrote outside its memory */
};

/* Records the executor's first error. */
adj_status set_error(adj_exec *e, adj_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A call that failed on an executor that stays usable: the newest message is kept. */
adj_status call_error(adj_exec *e, adj_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* ADJ_ENOMEM, recorded. */
adj_status no_memory(adj_exec *e);

/* To where the next value may begin. */
static inline size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }
enum { CANARY = 64 }; /* bytes on each side of a slot */
/* Returns the bytes that a slot takes up: its own, and canaries on both sides if there are any. */
static inline size_t slot_footprint(const adj_exec *e, const slot *s)
{
    return aligned(s->bytes) + (e->canaries ? 2 * CANARY : 0);
}
static inline slot *slot_of(const adj_exec *e, int buffer)
{
    return &e->slot[e->buffer[buffer].slot];
}
static inline char *leaf_data(const adj_exec *e, const leaf *l)
{
    return slot_of(e, l->buffer)->data;
}
/* Inputs are not, at first; one without elements needs no value. */
static inline int is_set(const adj_exec *e, const leaf *l)
{
    return l->version > 0 || slot_of(e, l->buffer)->bytes == 0;
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

/* options.c: *o is opts with what ADJOINT_PLAN adds, so that programs that set no options, tests
 * above all, can be run with other plans. The first option that is wrong is the executor's error.
 */
adj_status read_exec_options(adj_exec *e, const adj_graph *g, const adj_exec_opts *opts,
                             adj_exec_opts *o);

/* build.c: everything is planned and allocated. */
adj_status build_executor(adj_exec *e, const adj_graph *g, const adj_exec_opts *o);

/* run.c: a step's kernel, of which the options' before_kernel is told. */
adj_status run_kernel(const adj_exec *e, const step *s, adj_call *call);
/* All steps that are needed, then the updates. */
adj_status run_steps(adj_exec *e);
/* The first of them alone, unless they have run since a parameter was set. */
adj_status run_invariants(adj_exec *e);
/* One step, on whatever its operands are. */
adj_status run_step(adj_exec *e, step *s);
/* Between steps: what backends have started goes on, and who asks them is answered. */
void progress_backends(const adj_exec *e);

/* canary.c: words before and after every slot, that no kernel may touch. */
void draw_canaries(const adj_exec *e, int step); /* NONE: those of kept slots */
adj_status check_canaries(adj_exec *e, int step);
/* Whose value the slot holds first: `conv2d "conv1"`, or `conv2d` without a name; or "scratch". */
enum { SLOT_NAME = 100 };
void name_slot(const adj_exec *e, const slot *s, char text[SLOT_NAME]);

#endif
