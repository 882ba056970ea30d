/* exec.h - an executor's state: options, backends, plan, the plan's memory, and the result of the
 * last run. Only the last two change in a run. */
#ifndef ADJ_EXEC_H
#define ADJ_EXEC_H

#include "base/clock.h"
#include "internal.h"
#include "plan.h"
#include "report.h"

enum { MAX_BACKENDS = 8 };

typedef struct { /* "op=backend" of the options */
    const adj_op *op;
    int backend;
} op_backend;

typedef struct {                /* in order of preference */
    int n, fallback, preferred; /* indices of the last backend, the reference, and of the first */
    const adj_backend *list[MAX_BACKENDS + 1]; /* ended by NULL */
    void *opened[MAX_BACKENDS];
    int is_open[MAX_BACKENDS];
    int n_op;
    op_backend *op;
} exec_backends;

typedef struct {
    char *data;
    size_t bytes;
} exec_area;

typedef struct {
    exec_area arena;   /* values and scratch of one run */
    exec_area storage; /* leaves and other values kept between runs */
} exec_memory;

typedef enum { NOT_RUN, RUN_COMPLETED, RUN_FAILED } run_state;

typedef struct { /* state that changes when a value is set or a run is made */
    run_state last;
    adj_status status;       /* status of the last run */
    int overrun;             /* the run failed because a kernel wrote outside its memory */
    uint64_t *version;       /* by leaf: grows with every change; 0: never set */
    uint64_t invariant_seen; /* invariant_version when the invariant steps ran; 0: never */
    double *seconds;         /* by step, when profiled; 0: the step did not run */
    char message[ADJ_WHY];   /* message of the kernel that failed */
} exec_run;

typedef struct planning planning;

struct adj_exec {
    region region;
    adj_status status;
    char message[ADJ_MESSAGE];
    char warning[ADJ_MESSAGE];
    /* The caller's options, with the actual number of threads, and debug copied to the next member.
     * Other pointers are only read while planning. */
    adj_exec_opts opts;
    adj_exec_debug debug;
    adj_exec_internal internal; /* only before_kernel is called in runs */
    exec_backends backends;
    plan plan;
    exec_memory memory;
    exec_run run;
    adj_exec_info info;
    exec_details details;
    const char *selection; /* adj_exec_selection's */
    int plan_is_wrong;     /* the error is that of a wrong plan: no kernel is at fault */
    planning *planning;    /* data for planning alone; NULL: the plan is complete */
};

/* Records the executor's first error. */
adj_status set_error(adj_exec *e, adj_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Records ADJ_ENOMEM. */
adj_status no_memory(adj_exec *e);
/* Returns zeroed memory that lives as long as the executor; NULL: ADJ_ENOMEM is recorded. */
void *exec_alloc(adj_exec *e, size_t count, size_t size);

/* build.c: plans and allocates everything. */
adj_status build_executor(adj_exec *e, const adj_graph *g);
/* build.c: sets every pointer that a slot or a step uses. Foreign slots point into the memory of
 * their owner. */
void point_steps(adj_exec *e);

static inline uint64_t *leaf_version(const adj_exec *e, const leaf *l)
{
    return &e->run.version[l - e->plan.leaf];
}
/* True if the leaf has a value: inputs have none at first; one without elements needs none. */
static inline int is_set(const adj_exec *e, const leaf *l)
{
    return *leaf_version(e, l) > 0 || slot_of(&e->plan, l->buffer)->bytes == 0;
}
/* Binds the call of a prepared step, except operands, results and message. */
static inline void bind_call(const adj_exec *e, step *s, void *scratch)
{
    s->call.group = &s->group;
    s->call.state = s->prep.state;
    s->call.scratch = scratch;
    s->call.threads = e->opts.threads;
}
/* Returns the name of the buffer's layout: "plain", or as its backend names it. */
const char *layout_text(const adj_exec *e, const buffer *b);

#endif
