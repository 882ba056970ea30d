/* adjoint.h - build, differentiate and run small convolutional networks on a CPU.
 *
 * A network is a graph of immutable nodes; a node is one value. Builders such as adj_conv2d()
 * (adjoint_ops.h) add a node and return it; adj_grad() adds the nodes that compute a gradient; an
 * executor (adj_exec) plans a set of nodes over a backend and runs them.
 *
 * Errors. A builder that is given something impossible returns NULL and the graph keeps the first
 * error: a status and one sentence (adj_graph_status, adj_graph_message). Builders accept NULL
 * operands and return NULL silently, so one check at the end of a model is enough. Everything else
 * returns an adj_status; the sentence is kept at the object that failed (adj_..._message), or,
 * where there is none, written to the caller's adj_error. Nothing in the library prints, aborts or
 * exits.
 *
 * Ownership. A graph owns its nodes, names and updates; an executor owns its plan, parameter values
 * and memory. Data passed in is copied. Executors are freed before their graph. Every *_free(NULL)
 * does nothing.
 *
 * Threads. A graph: one thread while it grows, any number of readers afterwards. An executor: one
 * thread at a time. Different executors share no mutable state.
 *
 * Versions. Before 1.0 each minor version may change structs: the shared library's name carries it
 * (libadjoint.so.0.2), and a graph, op or backend made with another version's header is refused
 * (ADJ_EVERSION).
 *
 * Counting. x_count says how many there are, x_at(i) gives the i-th of them, 0 the first.
 *
 * Environment. Read by adj_exec_new, which fails on what it cannot take; empty is as not set:
 *   ADJOINT_PLAN        adds to all executors' options "unfused" (adj_exec_debug.no_fusion) or
 * "tune" (for 0.05 s a plan, unless they have it), or both with a comma. Another word: ADJ_EARG
 *   ADJOINT_MAX_ISA     the CPU's instructions that the backend "direct" uses, when a plan needs
 *                       it: up to "base", "avx2", "avx512", "avx512_bf16" or "amx". Another word:
 *                       ADJ_EARG. oneDNN's limit is its own ONEDNN_MAX_CPU_ISA
 *   ADJOINT_QUARANTINE  in place of adj_exec_debug.quarantine where that is NULL, when a plan needs
 *                       the backend "onednn": "off". Another word: ADJ_EARG
 *   ADJOINT_TUNE        the tune file, where there is tuning and adj_exec_opts.tune_file is NULL;
 *                       "off": none */
#ifndef ADJOINT_H
#define ADJOINT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of this header; of the library that runs: adj_version. */
#define ADJ_VERSION_MAJOR 0
/* Before 1.0 another one is another contract. */
#define ADJ_VERSION_MINOR 2
/* Corrections. */
#define ADJ_VERSION_PATCH 0
/* As one number, 200 for 0.2.0: larger is newer. */
#define ADJ_VERSION (ADJ_VERSION_MAJOR * 10000 + ADJ_VERSION_MINOR * 100 + ADJ_VERSION_PATCH)
/* The same as text. */
#define ADJ_VERSION_TEXT "0.2.0"

/* Stands before what the shared libraries export. */
#define ADJ_API __attribute__((visibility("default")))
#define ADJ_MAX_RANK 6 /* axes of a value, at most */

/* What a call came to. The sentence that belongs to it is where the function says. */
typedef enum {
    ADJ_OK,        /* nothing is wrong */
    ADJ_EARG,      /* an argument that is never right */
    ADJ_ESHAPE,    /* shapes that do not fit each other */
    ADJ_EDTYPE,    /* element types that do not fit each other */
    ADJ_ENOGRAD,   /* an op without a gradient rule was reached */
    ADJ_ENOKERNEL, /* no backend computes this node */
    ADJ_ENOMEM,    /* none is left, or a plan needs more than there is */
    ADJ_EBACKEND,  /* a backend failed while planning or running */
    ADJ_EIO,       /* a file: missing, truncated, lying */
    ADJ_EVERSION   /* the header and the library differ */
} adj_status;

enum { ADJ_MESSAGE = 512 }; /* bytes of a sentence, with its final 0; a longer one is cut */

/* Why a call failed, for functions that have no object to keep it. They take it last (NULL: not
 * wanted) and return the status as well. Only a failure is written: all zero before the first call,
 * it afterwards holds the last failure, if there was one. */
typedef struct {
    adj_status status;         /* of the call that failed */
    char message[ADJ_MESSAGE]; /* what was given and what was expected; "" when status is ADJ_OK */
} adj_error;

/* Element types: IEEE 754's binary32, binary64 and binary16; bfloat16; 32-bit integers. */
typedef enum { ADJ_F32, ADJ_F64, ADJ_F16, ADJ_BF16, ADJ_I32 } adj_dtype;
/* Windows at an image's border, as TensorFlow has them. VALID: those that lie inside. SAME: ceil(in
 * / stride) results along an axis, with max((out - 1) * stride + (k - 1) * dilation + 1 - in, 0)
 * zeros around it, the odd one at its end. EXPLICIT: pad says how many zeros. */
typedef enum { ADJ_VALID, ADJ_SAME, ADJ_EXPLICIT } adj_padding;
/* An image's axes: [batch, height, width, channels] or [batch, channels, height, width]. */
typedef enum { ADJ_NHWC, ADJ_NCHW } adj_format;

/* Row-major sizes; also used for lists of indices (pads, slices), whose length is rank. */
typedef struct {
    int64_t rank, dim[ADJ_MAX_RANK]; /* how many axes; the size of each, 0 and up */
} adj_shape;

/* A value's type: what its elements are, and how many along each axis. */
typedef struct {
    adj_dtype dtype; /* of each element */
    adj_shape shape; /* rank 0: a scalar */
} adj_type;

/* A network: its nodes, names and updates, its first error. Made by adj_graph_new. */
typedef struct adj_graph adj_graph;
/* A value of a graph: an op over other nodes, or a leaf. It is the graph's, and never changes. */
typedef struct adj_node adj_node;
/* A plan of a graph, with the memory to run it and the parameters' values. Made by adj_exec_new. */
typedef struct adj_exec adj_exec;
/* A list of assignments {leaf := next}. It is the graph's. */
typedef struct adj_updates adj_updates;

/* Memory for a graph or an executor. alloc returns NULL when out of memory; free is never called
 * with NULL. */
typedef struct {
    void *(*alloc)(void *user, size_t bytes); /* NULL: none is left */
    void (*free)(void *user, void *p);        /* of what alloc gave */
    void *user;                               /* handed to both */
} adj_allocator;

/* "ok", "bad argument", ...; "f32", ...: constant strings, never NULL. */
ADJ_API const char *adj_status_name(adj_status status);
/* "f32", "f64", "f16", "bf16", "i32"; "no dtype" for another value. A constant string. */
ADJ_API const char *adj_dtype_name(adj_dtype dtype);
/* ADJ_EARG if there is no such name; *dtype is then left as it is. */
ADJ_API adj_status adj_dtype_from_name(const char *name, adj_dtype *dtype);
/* Bytes of one element; 0 for a value that is no dtype. */
ADJ_API size_t adj_dtype_size(adj_dtype dtype);
/* Elements of a shape: 1 for a scalar, 0 with an empty dimension, -1 when it is no shape or
 * overflows. */
ADJ_API int64_t adj_shape_elems(adj_shape shape);
/* Bytes of a value, as adj_set and adj_get take them; SIZE_MAX when it is no type or overflows. */
ADJ_API size_t adj_type_bytes(adj_type type);

/* For functions of your own that take an adj_error: fills it, unless it is NULL, and returns
 * status. */
ADJ_API adj_status adj_error_set(adj_error *error, adj_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- graphs ---- */

/* All zero is the default: malloc and free - large pieces in huge pages, where the system gives
 * them to those who ask (madvise) -, no hook. */
typedef struct {
    const adj_allocator *allocator; /* copied */
    /* Called once, when the graph's first error is recorded: the place for a breakpoint. */
    void (*on_error)(void *user, adj_status status, const char *message);
    void *user; /* handed to on_error */
} adj_graph_opts;

/* Of the library that runs, which may be newer than the header: as ADJ_VERSION, and as text. */
ADJ_API int adj_version(void);
/* "0.2.0", of the library that runs: a constant string. */
ADJ_API const char *adj_version_text(void);

/* NULL only when out of memory. version is ADJ_VERSION; a library of another major version - before
 * 1.0, of another minor one - gives a graph whose status is ADJ_EVERSION, and reads no struct of
 * its caller's: sizes and fields may differ. Nor do adj_exec_new, adj_compare, adj_gradcheck and
 * adj_model_logits with that graph. opts may be NULL. */
ADJ_API adj_graph *adj_graph_new_with(int version, const adj_graph_opts *opts);
/* adj_graph_new_with for this header's version, with malloc and free and no hook. */
static inline adj_graph *adj_graph_new(void) { return adj_graph_new_with(ADJ_VERSION, NULL); }
/* Frees the graph, its nodes, names and updates. Its executors are freed before. */
ADJ_API void adj_graph_free(adj_graph *g);
/* The first error, sticky; ADJ_OK and "" if there was none. For g == NULL: ADJ_ENOMEM. */
ADJ_API adj_status adj_graph_status(const adj_graph *g);
/* That error's sentence, which is the graph's. For g == NULL: that there was no memory. */
ADJ_API const char *adj_graph_message(const adj_graph *g);

/* For builders of your own: records the graph's first error ("op: what is wrong (got ..., expected
 * ...)") and returns status. */
ADJ_API adj_status adj_fail(adj_graph *g, adj_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Looking at a graph. Nodes are numbered from 0 in the order of their creation: operands come
 * before their users. */
ADJ_API int adj_graph_node_count(const adj_graph *g);
ADJ_API adj_node *adj_graph_node_at(const adj_graph *g, int id); /* NULL when out of range */
/* The graph it is of. NULL for NULL. */
ADJ_API adj_graph *adj_node_graph(const adj_node *n);
/* Its number in the graph. -1 for NULL. */
ADJ_API int adj_node_id(const adj_node *n);
ADJ_API const char *adj_node_op(const adj_node *n); /* "conv2d" */
ADJ_API const char *
adj_node_name(const adj_node *n); /* a leaf's name or the label given by adj_label; "" */
/* Element type and shape of its value. For NULL all zero, an f32 scalar. */
ADJ_API adj_type adj_node_type(const adj_node *n);
/* How many operands it has; 0 for a leaf, and for NULL. */
ADJ_API int adj_node_operand_count(const adj_node *n);
/* The i-th of them; NULL when out of range. */
ADJ_API adj_node *adj_node_operand_at(const adj_node *n, int i);
ADJ_API int adj_node_is_param(const adj_node *n); /* trainable */
ADJ_API int adj_node_is_state(const adj_node *n); /* kept and updated, but not trained */
/* The leaf of that name, or else the first node with that label; NULL if there is none. */
ADJ_API adj_node *adj_find(const adj_graph *g, const char *name);
/* Gives a node a label for printing and adj_find; the first label stays. Returns n. */
ADJ_API adj_node *adj_label(adj_node *n, const char *name);

/* Prints what the roots need, one node a line; as Graphviz DOT with adj_print_dot. Gradient and
 * update nodes are told apart from forward ones. */
ADJ_API void adj_print(FILE *f, int n, adj_node *const roots[]);
/* Prints the graph below n roots as Graphviz DOT, with a color for each of the three roles. */
ADJ_API void adj_print_dot(FILE *f, int n, adj_node *const roots[]);

/* Prints the layers that y is computed by, a line each: name, op, shape of the result, parameters
 * and multiply-adds; and their sums. */
ADJ_API void adj_summary(FILE *f, const adj_node *y);

/* ---- leaves and ops ---- */

#include "adjoint_ops.h"

/* ---- gradients and updates ---- */

/* dx[i] = d y / d x[i], seeded with dy (shaped as y; NULL: ones, and y must be a scalar). What y
 * does not depend on gets zeros. dx may be x. Returns the graph's status; on failure every dx[i] is
 * NULL. */
ADJ_API adj_status adj_grad(adj_node *y, adj_node *dy, int n, adj_node *const x[], adj_node *dx[]);

/* Assignments {param or state := next} that an executor makes at the end of a run. Owned by the
 * graph. */
ADJ_API adj_updates *adj_updates_new(adj_graph *g);
/* Adds {leaf := next}: leaf a param or state, next of its type (else ADJ_ESHAPE), each leaf once
 * (else ADJ_EARG). The graph keeps the sentence. */
ADJ_API adj_status adj_updates_add(adj_updates *u, adj_node *leaf, adj_node *next);
/* All of a and b, in a new object; NULL operands count as empty. */
ADJ_API adj_updates *adj_updates_join(adj_graph *g, const adj_updates *a, const adj_updates *b);

/* How a training step is shared out. All zero but processes is the default. */
typedef struct {
    int processes; /* how many, 1 or more */
    int rank;      /* which one this is, from 0 */
    /* Into how many shards the batch of all processes is cut; 0: one for each. A process runs so
     * many of them, one after the other, with numbers that follow each other. */
    int shards;
    /* Small values are packed up to so many for one reduction; 0: 1 MiB, or an eighth of all, if
     * that is less, but no less than 32 KiB. */
    size_t bucket_bytes;
    /* Batch norms take the statistics of the whole batch, which are reduced in the forward pass, as
     * are the sums of their gradients in the backward pass: all shards together are then one
     * process with the whole batch, running statistics included. The shards of a process run side
     * by side, layer after layer, and need the memory of all of them. First derivatives only: a
     * gradient that reads these statistics by itself is ADJ_EARG. 0: each shard has its own. */
    int sync_batch_norm;
} adj_data_parallel_opts;
/* The same assignments where this graph's batch is one shard of a larger one: whatever they read of
 * the batch - gradients, statistics - is the mean over the shards of all processes
 * (adj_all_reduce), so that all processes assign the same. Gradients that are clipped by their norm
 * are means by then. What follows from inputs that are no single numbers is there once for each of
 * this process's shards; dropout counts elements as in the whole batch. With one process this
 * accumulates gradients in the memory of one shard, unless batch norms are synchronized.
 *
 * Shards are added up as a tree, neighbors first. With adj_exec_opts.same_bits the result has the
 * same bits for every number of processes that is S, 1, or leaves each a power of two of the S
 * shards.
 *
 * What is fetched is this process's own: `loss` is its first shard's, by the batch of that shard;
 * adj_shard_node has the others. The processes have the same parameters at first. Half types are
 * summed in f32. NULL: the graph has the error. */
ADJ_API adj_updates *adj_data_parallel(const adj_updates *u, const adj_data_parallel_opts *options);
/* The shards of this process; 1 for updates of another kind. */
ADJ_API int adj_shard_count(const adj_updates *u);
/* The node that stands for n in a shard, 0 to adj_shard_count - 1: an input to be set ("x" of shard
 * 2 is "x#2"), a loss to be fetched; n where all shards have the same. NULL: out of range. */
ADJ_API adj_node *adj_shard_node(const adj_updates *u, adj_node *n, int shard);
/* How many assignments; 0 for NULL. */
ADJ_API int adj_updates_count(const adj_updates *u);
/* What the i-th assigns to; NULL when out of range. */
ADJ_API adj_node *adj_updates_leaf_at(const adj_updates *u, int i);
/* What the i-th assigns; NULL when out of range. */
ADJ_API adj_node *adj_updates_next_at(const adj_updates *u, int i);
/* Assignments that layers added while a model was built (running statistics, step counters). */
ADJ_API void adj_layer_update_add(adj_node *leaf, adj_node *next);
/* All of these, empty if there are none. NULL for NULL and out of memory. */
ADJ_API adj_updates *adj_layer_updates(adj_graph *g);

/* What a node is made for. Printed; and the plan runs updates last, in place where it can, and in
 * f32 whatever the precision; scales gradients by adj_exec_opts.loss_scale; and recomputes
 * forward nodes (adj_exec_opts.recompute) for gradients only. */
typedef enum { ADJ_ROLE_FORWARD, ADJ_ROLE_GRADIENT, ADJ_ROLE_UPDATE } adj_role;
/* The role of the nodes made from now on; adj_grad gives its own the role GRADIENT. A node that
 * exists already keeps the role that it was made in. Returns the role until now, to be set again
 * afterwards. ADJ_EARG for another value. */
ADJ_API adj_role adj_graph_set_role(adj_graph *g, adj_role role);
/* Sets the name of the layer that is being built, such as "conv3", as the prefix of the graph's
 * errors: "conv3: conv2d: ...". NULL or "": no prefix. Returns the name until now, to be set again
 * afterwards. The string is not copied. */
ADJ_API const char *adj_graph_set_layer(adj_graph *g, const char *name);

/* ---- executors ---- */

/* EXACT: sums of products as they stand, in any order. FAST: also algorithms with fewer
 * multiplications or on faster instructions, and with larger rounding errors: of f32 and bf16
 * convolutions Winograd's for 3x3 and 5x5, of f32 products of two parts in bf16 where the CPU has
 * AMX. */
typedef enum { ADJ_MATH_EXACT, ADJ_MATH_FAST } adj_math;

/* AS_BUILT: every value in its node's type. BF16: f32 convolutions, matmuls and what lies between
 * them (activations and their gradients) are stored in bf16 and summed in f32; parameters,
 * statistics, losses, gradients of parameters and updates stay f32, and so does what is fetched.
 * F16: the same in f16, where gradients are stored loss_scale times as large, so that small ones do
 * not vanish; those of parameters, and what is fetched, have their size. */
typedef enum { ADJ_PRECISION_AS_BUILT, ADJ_PRECISION_BF16, ADJ_PRECISION_F16 } adj_precision;

/* For checking, comparing and finding faults; each costs something. All zero: none of it. */
typedef struct {
    FILE *trace; /* the graph is printed here after each pass */
    /* Called with the graph after each pass, by the pass's name, as long as it exists; image[id of
     * a node of the user's graph] is its node there, NULL where nothing needs it. NULL: nothing is
     * called. */
    void (*after_pass)(void *user, const char *pass, const adj_graph *g, adj_node *const image[]);
    /* Called before each kernel that computes a node or a group runs, in timing while tuning, too:
     * the group's first node and what computes it. So what crashes or hangs can be named. NULL:
     * nothing is called. */
    void (*before_kernel)(void *user, const adj_node *first, const char *backend, const char *impl);
    void *user;    /* handed to both */
    int no_passes; /* the graph is run as it was built; mixed precision and recompute are passes */
    const char *impl; /* take candidates whose implementation's name contains this, if there are */
    int no_fusion;    /* every node of the graph as it was built is a step of its own */
    int no_sharing;   /* every value has memory of its own, and nothing is computed in place */
    /* "off": oneDNN's implementations that are known to be wrong are used. "": they are left out.
     * NULL: what the environment's ADJOINT_QUARANTINE says, else they are left out. */
    const char *quarantine;
    int profile;   /* time every step: adj_exec_step_at */
    int canaries;  /* words around all memory, looked at after every step: adj_run fails with
                      ADJ_EBACKEND when a kernel has written where it must not */
    int checksums; /* of what each step reads and writes, kept for checkers (exec/inspect.h) */
    /* Instead of the built-in backends: NULL-ended, the last computes what no other does. For
     * authors of backends (adjoint_backend.h) and tests. */
    const struct adj_backend *const *backends;
} adj_exec_debug;

/* The threads of an executor that is not told how many: OpenMP's, which are the processors that the
 * affinity mask allows unless OMP_NUM_THREADS or omp_set_num_threads says otherwise; without
 * OMP_NUM_THREADS no more than the whole processors of a control group's quota (cpu.max,
 * cpu.cfs_quota_us). */
ADJ_API int adj_default_threads(void);

/* All zero is the default but for what to compute. */
typedef struct {
    int n_fetch;                /* how many nodes are fetched */
    adj_node *const *fetch;     /* readable with adj_get after adj_run */
    const adj_updates *updates; /* made at the end of adj_run */
    const char *backend;        /* NULL: "onednn"; "naive"; "onednn,max_pool=naive" */
    int threads;                /* 0: adj_default_threads */
    adj_math math;              /* ADJ_MATH_EXACT, unless it is set */
    adj_precision precision;    /* ADJ_PRECISION_AS_BUILT, unless it is set */
    /* Of F16; 0: 1024. A stored gradient beyond 65504 / loss_scale is infinite, one far below
     * 2^-24 / loss_scale is 0. A power of two rounds nothing. It is fixed; 1 where the optimizer
     * has one that follows the gradients (adj_optimizer_opts.loss_scale in adjoint_nn.h). */
    double loss_scale;
    uint64_t seed;                  /* of the parameters' initial values */
    const adj_allocator *allocator; /* NULL: the graph's; copied */
    /* Times the candidates of each step while planning - every implementation that the backends
     * have, in each layout - and takes the fastest; otherwise what the implementations say of
     * themselves decides, of equals the backends' order, the same on every start. What was
     * found is kept in tune_file and not timed again by the next plan on the same machine (NULL:
     * the file that the environment's ADJOINT_TUNE names, if it does; a file that cannot be used is
     * ignored and written anew: adj_exec_warning). A given selection gives the same results every
     * time.
     */
    int tune;
    const char *tune_file; /* as said above; one that ends in / is a folder, in which the file is
                              named after the machine */
    double tune_seconds;   /* about as long may one plan take for it; 0: 5 */
    /* > 0: how often the plan will run. Timing a step then takes at most 2 % of what the step will
     * take in all these runs, so that few runs are not delayed by it. */
    int64_t tune_runs;
    /* What adj_exec_selection said of another executor of the same graph: steps that it names are
     * computed as there, so that the results are the same to the bit; with tune the others are
     * timed. Lines that are not possible here are ignored, all of a text that is none is
     * (adj_exec_warning). */
    const char *selection;
    /* What is cheap - relu and its like, batch norm, add - is not kept for the gradient, but
     * recomputed (rematerialized) from what is kept: less memory, and the same results. 1: wherever
     * it can be done, hardly slower. 0: where that saves time, as less leaves the caches: 12 MB and
     * more are kept, of which 55 % or less have to be. -1: nowhere. */
    int recompute;
    /* 1: takes only kernels whose results have the same bits for any number of threads
     * (adj_prep.sums_by_threads is 0). 0: kernels whose sums depend on the thread
     * count are allowed. */
    int same_bits;
    adj_exec_debug debug; /* all zero: nothing of it */
} adj_exec_opts;

/* What a plan is and what it cost. All zero if there is none. */
typedef struct {
    size_t arena_bytes; /* values and scratch of one run, shared by lifetime */
    size_t live_bytes;  /* the largest sum of buffers alive at one step: the arena's lower bound */
    size_t storage_bytes;             /* leaves and what is kept between runs */
    size_t read_bytes, written_bytes; /* what the steps of one run move: their operands and results,
                                         once for each step; left out are scratch and steps that
                                         run only when a parameter has changed */
    int steps, reorders, naive_steps; /* kernels that run; of these, mere changes
                                         of layout; and those that the last backend computes */
    int recomputed;                   /* nodes computed again for the gradient */
    int timed;                        /* candidates that tune has run */
    double timed_seconds;             /* that it took */
    int cached;                       /* steps that the tune file decided */
    double plan_seconds;              /* what adj_exec_new took */
    int threads;                      /* of a run */
} adj_exec_info;

/* Plans the fetches and updates. The executor works on a private copy: the graph may grow
 * afterwards. *out is a handle to ask for the message even on failure (NULL only when out of
 * memory) and must be freed in every case. ADJ_ENOMEM also where malloc's memory obviously would
 * not do: the message says how much is needed and how much is there. */
ADJ_API adj_status adj_exec_new(adj_graph *g, const adj_exec_opts *opts, adj_exec **out);
/* Frees the executor, its plan, memory and parameter values. */
ADJ_API void adj_exec_free(adj_exec *e);
/* The graph that the executor was made of; NULL without an executor. */
ADJ_API adj_graph *adj_exec_graph(const adj_exec *e);
/* The sentence of what failed last, which is the executor's; "" if nothing has. */
ADJ_API const char *adj_exec_message(const adj_exec *e);
/* A non-fatal warning, one line: a tune file that was ignored, and why; time that was too
 * short to tune every step; a precision in which this CPU does not compute. "": none. */
ADJ_API const char *adj_exec_warning(const adj_exec *e);
/* The steps that tune decided and how, a line each, for adj_exec_opts.selection; it is the
 * executor's. "": none. */
ADJ_API const char *adj_exec_selection(const adj_exec *e);
/* Copies a leaf's value in, or a fetched node's (or a leaf's) value out: row-major, bytes its exact
 * size. A leaf that neither fetches nor updates need may be set, which does nothing, and has no
 * value to get; nor has an input that was never set, nor another node after a run that failed. A
 * fetched parameter shows the value from before the last run's updates, any other its current
 * value. */
ADJ_API adj_status adj_set(adj_exec *e, const adj_node *leaf, const void *data, size_t bytes);
/* adj_set without its copy: *data is where the executor keeps the leaf's value, 64-byte aligned,
 * row-major, adj_type_bytes of its type, for the caller to write there, all or a part of it, until
 * the next adj_run, adj_copy_params into this executor or adj_exec_free; then it is asked for
 * again. The leaf counts as set. On failure *data is NULL: ADJ_EARG for what adj_set would not
 * take, and where it would do nothing, as no fetch and no update needs the leaf. */
ADJ_API adj_status adj_set_in_place(adj_exec *e, const adj_node *leaf, void **data);
/* Copies out the value of a node that was fetched, or of a leaf. */
ADJ_API adj_status adj_get(adj_exec *e, const adj_node *node, void *out, size_t bytes);
/* Sets *value to that of a node of one element, of any type: adj_get of a loss. */
ADJ_API adj_status adj_get_scalar(adj_exec *e, const adj_node *node, double *value);
/* Where the value that adj_get would copy lies, row-major: to be read until the next adj_set,
 * adj_set_in_place, adj_run, adj_copy_params or adj_exec_free. NULL: there is none, and
 * adj_exec_message says why. */
ADJ_API const void *adj_data(adj_exec *e, const adj_node *node);
/* A run that fails on what it was given (labels out of range) changes no parameter. What follows
 * only from parameters and states that no update assigns, and constants, is computed anew only when
 * one of these has been set. */
ADJ_API adj_status adj_run(adj_exec *e);
/* Runs n different executors of one thread each (adj_exec_opts.threads = 1) side by side, each on a
 * thread of its own: inference of parts of a batch, without a thread that waits for another between
 * steps. Returns the failure of the first that fails, whose adj_exec_message says why; the others
 * have run. ADJ_EARG, and nothing runs, for an executor of more threads. */
ADJ_API adj_status adj_run_each(int n, adj_exec *const list[]);
/* Copies parameters and states by name. `from` must hold every parameter of `to`, and every state
 * that `to` does not update itself: ADJ_EARG lists those that `from` lacks. ADJ_ESHAPE if two of
 * the same name differ in type. On failure nothing is copied. `from` may hold more, such as an
 * optimizer's states. */
ADJ_API adj_status adj_copy_params(adj_exec *to, const adj_exec *from);
/* The parameters and states that the executor holds, as nodes of the user's graph. */
ADJ_API int adj_exec_param_count(const adj_exec *e);
/* The i-th of them; NULL when out of range. */
ADJ_API adj_node *adj_exec_param_at(const adj_exec *e, int i);
/* Prints the plan: each step with its kernel, layouts, place in the arena, and why a preferred
 * backend does not compute it. Without a plan, why there is none. */
ADJ_API void adj_exec_print(FILE *f, const adj_exec *e);
/* Sizes and counts of the plan; all zero if there is none. */
ADJ_API adj_exec_info adj_exec_stats(const adj_exec *e);

/* A backend's version and the instruction set it uses here, "2.6.3 avx512_core"; "* *" if it has
 * neither. ADJ_EARG if there is no such backend. */
ADJ_API adj_status adj_backend_describe(const char *backend, char *text, size_t size);

/* One step of the plan; strings live as long as the executor. */
typedef struct {
    const char *op;   /* of the first node it computes; "reorder" or "copy" */
    const char *name; /* of the last node it computes that has one; "" if none has */
    /* "" for copies */
    const char *backend, *impl;
    const char *why;      /* why a preferred backend does not compute it; NULL: it does */
    int n_node;           /* nodes computed together */
    adj_node *node;       /* the last of them in the user's graph; NULL if it has no such node */
    double flop;          /* nominal multiplications and additions */
    size_t bytes;         /* read and written, scratch left out */
    double seconds;       /* of the last run; 0 unless profiled, or when it was not needed */
    double tuned_seconds; /* what it took when tune chose it; 0: tune did not */
    adj_dtype dtype;      /* what it computes in: of its last node, which may differ from node's */
} adj_step_info;
/* How many steps the plan has; 0 without a plan. */
ADJ_API int adj_exec_step_count(const adj_exec *e);
/* The i-th of them in the order of the run; all "" and 0 when out of range. */
ADJ_API adj_step_info adj_exec_step_at(const adj_exec *e, int i);

#ifdef __cplusplus
}
#endif
#endif
