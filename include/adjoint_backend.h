/* adjoint_backend.h - for authors of backends: group, kernel, backend. Part of adjoint_ext.h, and
 * without ABI promise.
 *
 * A backend is one const struct (adj_backend) with a list of kernels; whether one supports a group
 * of nodes is queried by preparing it. */
#ifndef ADJOINT_BACKEND_H
#define ADJOINT_BACKEND_H

#include "adjoint_ext.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct adj_layout adj_layout; /* opaque, interned by its backend; NULL is plain row-major */

typedef struct {                 /* the nodes that one step computes, in id order */
    int n_node;                  /* how many */
    const adj_node *const *node; /* the nodes */
    int n_in;                    /* how many values enter */
    const adj_node *const *in;   /* values that enter, in order of first use; each once */
    int n_out;                   /* how many values leave */
    const adj_node *const *out;  /* values that leave, in id order */
} adj_group;

/* Where a value is among group->in, or group->out; -1: nowhere. */
static inline int adj_group_in(const adj_group *g, const adj_node *value)
{
    return adj_position(g->n_in, g->in, value);
}
/* The same among group->out. */
static inline int adj_group_out(const adj_group *g, const adj_node *value)
{
    return adj_position(g->n_out, g->out, value);
}

enum { ADJ_MAX_ALIASES = 2, ADJ_WHY = 160 };

typedef struct {       /* a result that may be computed in place */
    int out;           /* by group->out */
    uint32_t operands; /* bit i: it may be written over in[i], unless another operand is there */
} adj_alias;

typedef struct {            /* conversation between plan and kernel */
    const adj_layout **in;  /* by group->in: those there are; the kernel writes what it wants */
    const adj_layout **out; /* by group->out: what the kernel will write (NULL: plain) */
    /* Bit i: operand i changes only when a parameter is set, as the filters of an inference do: a
     * reorder of it runs once, not in every run. Of the first 32. */
    uint32_t invariant;
    size_t scratch;                   /* bytes, 64-aligned, from the executor's arena */
    adj_alias alias[ADJ_MAX_ALIASES]; /* each of another result; operands 0: of none */
    /* Nominal seconds, by what an ordinary processor of this instruction set reaches
     * (exec/roofline.h): of the group's arithmetic at the peak, of its operands and results on
     * their way from and to memory, and of one byte. */
    double arithmetic, memory, byte;
    /* Estimated seconds of a run, with the reorders of its operands and results. As the kernel
     * gets it: those of a kernel that reaches half of the peak. The plan takes the kernel with the
     * least, of equals the first in the order of backends. Below 0, or NaN: as if not written. */
    double seconds;
    int sums_by_threads; /* the order of its sums, and so the last bits, depends on how many there
                            are */
    char impl[64];       /* for the plan's printout */
    char why[ADJ_WHY];   /* a refusal's reason */
    void *state;         /* freed by kernel->drop */
} adj_prep;

/* What a kernel is given to run. */
typedef struct {
    const adj_group *group; /* as it was prepared */
    void *state;            /* adj_prep.state */
    const void *const *in;  /* by group->in, in the layouts agreed */
    void *const *out;       /* by group->out; some may be operands' memory: adj_prep.alias */
    void *scratch;          /* adj_prep.scratch bytes, 64-aligned; NULL for 0 */
    int threads;            /* how many it may use */
    char *message;          /* ADJ_WHY bytes, for a failure's sentence */
} adj_call;

/* For kernels of softmax and its cross-entropies, before they write a result: if the group's first
 * node has integer labels, is each one of the classes, or -1? If not, ADJ_EARG, and the sentence in
 * c->message. The labels enter the group, plain. */
ADJ_API adj_status adj_call_check_labels(const adj_call *c);

/* A way to compute some groups. */
typedef struct adj_kernel {
    const char *name; /* for messages */
    /* Optional: the group this kernel would compute that starts at root, e.g. {conv2d, bias_add,
     * relu}: writes up to max nodes (root among them) and returns how many; 0: none. uses is
     * indexed by node id. NULL: root alone. */
    int (*match)(const adj_node *root, const adj_uses *uses, int max, const adj_node **group);
    /* Optional: what it would compute along with a group that it was selected for, and that `last`
     * alone leaves: nodes that follow each other, the first one last's only reader, as {add, relu};
     * writes up to max of them, and returns how many. The plan prepares candidate 0 for the group
     * with all of them, or with the first ones, where they can be computed at this place. */
    int (*epilogue)(const adj_node *last, const adj_uses *uses, int max, const adj_node **nodes);
    /* Candidate 0, 1, 2, ... for this group; ADJ_ENOKERNEL (with p->why): none (left). */
    adj_status (*prepare)(void *backend, const adj_group *g, int candidate, adj_prep *p);
    adj_status (*run)(const adj_call *c);     /* no allocation; on failure writes message */
    void (*drop)(void *backend, void *state); /* NULL: nothing to free */
} adj_kernel;

/* A change of layout. */
typedef struct {
    void *backend;               /* what open gave */
    const adj_layout *from, *to; /* NULL: plain */
    adj_type type;               /* of the value */
} adj_reorder;

/* What a backend is opened with. */
typedef struct {
    const adj_allocator *allocator; /* for all memory that lasts */
    int threads;                    /* how many it may use, 1 or more */
    const char *quarantine;         /* as adj_exec_debug.quarantine */
    adj_math math;                  /* as adj_exec_opts.math */
    const struct adj_backend *self; /* the one that is opened, which may be part of more */
    char *message; /* ADJ_WHY bytes, for a failure's sentence; with ADJ_OK, for a warning */
} adj_backend_opts;

/* A backend: facts and functions, constant. */
typedef struct adj_backend {
    int version; /* ADJ_VERSION: of another layout it is refused (ADJ_EVERSION), and not read on */
    const char *name; /* as in adj_exec_opts.backend */
    adj_status (*open)(const adj_backend_opts *opts, void **backend); /* *backend may stay NULL */
    void (*close)(void *backend);                                     /* frees it */
    const adj_kernel *const *kernels; /* NULL-ended, in order of preference */
    /* Optional: version and instruction set, "2.6.3 avx512_core". */
    void (*describe)(char *text, size_t size);
    /* Optional: called after every step of a run, whichever backend has computed it, so that what
     * was started goes on. Such a backend is opened for every plan, also where it computes nothing.
     */
    void (*progress)(void *backend);
    /* The rest is NULL for a backend that knows only plain tensors. */
    size_t (*layout_bytes)(const adj_layout *l);     /* of a value in that layout */
    const char *(*layout_name)(const adj_layout *l); /* for the plan's printout */
    adj_status (*reorder_prepare)(const adj_reorder *r, void **state,
                                  size_t *scratch); /* ADJ_ENOKERNEL: it cannot */
    adj_status (*reorder_run)(void *state, const void *in, void *out,
                              void *scratch);         /* from one layout to the other */
    void (*reorder_drop)(void *backend, void *state); /* frees state */
} adj_backend;

/* What the i-th step computes, as nodes of the executor's own copy of the graph: images are NHWC
 * there, types may be others than in the caller's, and what was folded is gone. Lives as long as
 * the executor. NULL: there is no such step, or it is a reorder or a copy. */
ADJ_API const adj_group *adj_exec_step_group(const adj_exec *e, int i);
/* The layout that a value which enters or leaves that group has there, by its backend's name for it
 * ("plain": row-major); lives as long as the executor. "": no such value. */
ADJ_API const char *adj_exec_step_layout(const adj_exec *e, int i, const adj_node *value);

/* NULL-ended; the only file that names concrete backends. */
ADJ_API extern const adj_backend *const adj_backends[];

ADJ_API void *adj_alloc(const adj_allocator *a, size_t bytes); /* zeroed, 64-byte aligned */
ADJ_API void adj_release(const adj_allocator *a, void *p);     /* p may be NULL */

#ifdef __cplusplus
}
#endif
#endif
