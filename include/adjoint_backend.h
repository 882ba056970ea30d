/* adjoint_backend.h - for authors of backends: group, kernel, backend. Part of adjoint_ext.h; its
 * ABI may change in any version.
 *
 * A backend is one const struct (adj_backend) with a list of kernels. The plan calls prepare() of a
 * kernel to find out whether it supports a group of nodes. */
#ifndef ADJOINT_BACKEND_H
#define ADJOINT_BACKEND_H

#include "adjoint_ext.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A memory layout of a backend, opaque. Equal layouts have one pointer; NULL: plain row-major. */
typedef struct adj_layout adj_layout;

typedef struct {                 /* the nodes that one step computes, in id order */
    int n_node;                  /* number of nodes */
    const adj_node *const *node; /* the nodes */
    int n_in;                    /* number of operands of the group */
    /* Operands of the group: values from outside, in order of first use, each once. */
    const adj_node *const *in;
    int n_out; /* number of results of the group */
    /* Results of the group: values that other groups read, in id order. */
    const adj_node *const *out;
} adj_group;

/* Returns the index of a value in group->in; -1 if it is not an operand of the group. */
static inline int adj_group_in(const adj_group *g, const adj_node *value)
{
    return adj_position(g->n_in, g->in, value);
}
/* Returns the index of a value in group->out; -1 if it is not a result of the group. */
static inline int adj_group_out(const adj_group *g, const adj_node *value)
{
    return adj_position(g->n_out, g->out, value);
}

enum { ADJ_MAX_ALIASES = 2, ADJ_WHY = 160 };

typedef struct {       /* a result that may be computed in place of an operand */
    int out;           /* by group->out */
    uint32_t operands; /* bit i: the result may overwrite in[i], unless another operand shares that
                          memory */
} adj_alias;

typedef struct { /* in and out parameters of prepare() */
    /* Indexed like group->in. In: present layouts; out: layouts that the kernel needs. */
    const adj_layout **in;
    /* Indexed like group->out. Out: layouts that the kernel writes (NULL: plain). */
    const adj_layout **out;
    /* In. Bit i, for the first 32 operands: operand i changes only when a parameter is set, such as
     * the filters in inference, so that a reorder of it runs once and not in every run. */
    uint32_t invariant;
    size_t scratch; /* out: bytes of scratch, 64-byte aligned, from the executor's arena */
    adj_alias alias[ADJ_MAX_ALIASES]; /* out: one entry for each result in place; operands 0: unused
                                         entry */
    /* In. Nominal seconds on a typical processor of this instruction set (exec/candidate.h): the
     * group's arithmetic at peak speed, the memory traffic of its operands and results, and the
     * transfer of one byte. */
    double arithmetic, memory, byte;
    /* Estimated seconds of a run, with the reorders of operands and results. In: the estimate for a
     * kernel at half of the peak speed. Out: the kernel's own estimate; a negative value or NaN is
     * ignored. The plan takes the kernel with the least estimate, or the first of equal ones in the
     * order of backends. */
    double seconds;
    int sums_by_threads; /* out, 1: the order of sums, and so the last bits, depends on the number
                            of threads */
    char impl[64];       /* for the plan's printout */
    char why[ADJ_WHY];   /* out: reason of a refusal */
    void *state;         /* out: the kernel's data, freed by kernel->drop */
} adj_prep;

/* Arguments of a kernel's run(). */
typedef struct {
    const adj_group *group; /* the prepared group */
    void *state;            /* adj_prep.state */
    const void *const *in;  /* indexed like group->in, in the layouts agreed in prepare() */
    void *const *out;       /* indexed like group->out; a result may share the memory of an operand:
                               adj_prep.alias */
    void *scratch;          /* adj_prep.scratch bytes, 64-aligned; NULL for 0 */
    int threads;            /* number of threads that it may use */
    char *message;          /* ADJ_WHY bytes for the message of a failure */
} adj_call;

/* A kernel: one way to compute certain groups. */
typedef struct adj_kernel {
    const char *name; /* for messages */
    /* Optional: proposes the group that this kernel would compute from root on, such as {conv2d,
     * bias_add, relu}. Writes up to max nodes, root included, and returns their number; 0: none.
     * uses is indexed by node id. NULL: the group is root alone. */
    int (*match)(const adj_node *root, const adj_uses *uses, int max, const adj_node **group);
    /* Optional: proposes an epilogue for a group that the kernel was selected for and whose only
     * result is `last`: a chain of nodes such as {add, relu}, the first of which is the only reader
     * of last. Writes up to max nodes and returns their number. The plan prepares candidate 0 for
     * the group with all of them, or with as many of the first ones as have their other operands
     * available. */
    int (*epilogue)(const adj_node *last, const adj_uses *uses, int max, const adj_node **nodes);
    /* Prepares candidate 0, 1, 2, ... for a group. ADJ_ENOKERNEL, with the reason in p->why: there
     * is no such candidate. omp_get_max_threads() is the number of threads that the group should
     * run on: 1 if starting threads takes longer than the group. */
    adj_status (*prepare)(void *backend, const adj_group *g, int candidate, adj_prep *p);
    adj_status (*run)(const adj_call *c);     /* computes the group without allocating memory; on
                                                 failure writes c->message */
    void (*drop)(void *backend, void *state); /* NULL: nothing to free */
} adj_kernel;

/* Arguments of a backend's open(). */
typedef struct {
    const adj_allocator *allocator; /* for all memory that outlives a call */
    int threads;                    /* threads that it may use, 1 or more */
    adj_math math;                  /* as adj_exec_opts.math */
    /* The backend that is opened; it may be the first member of a larger struct. */
    const struct adj_backend *self;
    char *message; /* ADJ_WHY bytes for the message of a failure, or with ADJ_OK for a warning */
} adj_backend_opts;

/* A backend: constant facts and functions. */
typedef struct adj_backend {
    int version; /* ADJ_VERSION; a backend with another struct layout is refused (ADJ_EVERSION) */
    const char *name; /* as in adj_exec_opts.backend */
    adj_status (*open)(const adj_backend_opts *opts, void **backend); /* *backend may stay NULL */
    void (*close)(void *backend);                                     /* frees it */
    const adj_kernel *const *kernels; /* NULL-terminated, in order of preference */
    /* Optional: writes version and instruction set, such as "2.6.3 avx512_core". */
    void (*describe)(char *text, size_t size);
    /* Optional: called after every step of a run, whichever backend has computed it, to advance
     * operations that are under way. A backend with this function is opened for every plan. */
    void (*progress)(void *backend);
    /* The remaining functions are NULL for a backend without layouts of its own. */
    size_t (*layout_bytes)(const adj_layout *l);     /* bytes of a value in that layout */
    const char *(*layout_name)(const adj_layout *l); /* for the plan's printout */
    /* Prepares a reorder: the conversion of a value of that type from plain (from is NULL) to a
     * layout or from a layout to plain (to is NULL). Sets *state and the bytes of scratch.
     * ADJ_ENOKERNEL: it cannot. */
    adj_status (*reorder_prepare)(void *backend, const adj_layout *from, const adj_layout *to,
                                  adj_type type, void **state, size_t *scratch);
    adj_status (*reorder_run)(void *state, const void *in, void *out,
                              void *scratch); /* converts a value from one layout to the other */
    void (*reorder_drop)(void *backend, void *state); /* frees state */
} adj_backend;

/* The built-in backends in order of preference, NULL-terminated. */
ADJ_API extern const adj_backend *const adj_backends[];

/* Returns zeroed, 64-byte aligned memory; NULL when out of memory. */
ADJ_API void *adj_alloc(const adj_allocator *a, size_t bytes);
ADJ_API void adj_release(const adj_allocator *a, void *p); /* frees p, which may be NULL */

#ifdef __cplusplus
}
#endif
#endif
