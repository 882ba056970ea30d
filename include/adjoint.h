/* adjoint.h - build, differentiate and run small convolutional networks on a CPU.
 *
 * A network is a graph of immutable nodes; a node is one value. Builders such as adj_conv2d()
 * (adjoint_ops.h) add a node and return it; adj_grad() adds the nodes that compute a gradient; an
 * executor (adj_exec) plans a set of nodes over a backend and runs them.
 *
 * Errors. A builder that gets an invalid argument returns NULL, and the graph records the first
 * error: a status and a message (adj_graph_status, adj_graph_message). Builders accept NULL
 * operands and then return NULL without another error, so one check at the end of a model is
 * enough. Every other function that can fail returns an adj_status. Its message is stored in the
 * object that failed (adj_..._message) or, for functions without such an object, in the caller's
 * adj_error. The library never prints, aborts or exits; functions that take a FILE write to that
 * file alone.
 *
 * Ownership. A graph owns its nodes, names and updates; an executor owns its plan, parameter values
 * and memory. Data passed in is copied. Executors are freed before their graph. Every *_free(NULL)
 * does nothing.
 *
 * Threads. A graph: one thread while it grows, any number of readers afterwards. An executor: one
 * thread at a time. Different executors share no mutable state.
 *
 * Versions. Before 1.0 each minor version may change structs: the name of the shared library
 * contains major and minor version (libadjoint.so.0.3), and a graph, op or backend compiled with
 * the header of another version is refused (ADJ_EVERSION).
 *
 * Counting. x_count returns the number of elements of a list, x_at(i) the i-th element, counted
 * from 0.
 *
 * Environment. adj_exec_new reads these variables and fails with ADJ_EARG on another value; an
 * empty variable counts as not set:
 *   ADJOINT_PLAN        options added to those of every executor: "unfused"
 *                       (adj_exec_debug.no_fusion), "tune" (for 0.05 s a plan, unless tuning is on
 *                       already), or both with a comma
 *   ADJOINT_MAX_ISA     limits the instruction set of the backend "direct": "base", "avx2",
 *                       "avx512", "avx512_bf16" or "amx". Read when a plan needs that backend.
 *                       oneDNN has its own variable, ONEDNN_MAX_CPU_ISA
 *   ADJOINT_QUARANTINE  "off": the oneDNN implementations that are known to be wrong are used.
 *                       Read when a plan needs the backend "onednn"
 *   ADJOINT_TUNE        the tune file where tuning is on and adj_exec_opts.tune_file is NULL;
 *                       "off": no file */
#ifndef ADJOINT_H
#define ADJOINT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Major version of this header. adj_version has the version of the loaded library. */
#define ADJ_VERSION_MAJOR 0
/* Minor version. Before 1.0 a new minor version may change structs and functions. */
#define ADJ_VERSION_MINOR 3
/* Patch version: bug fixes only. */
#define ADJ_VERSION_PATCH 0
/* The version as one number that grows with each release: 300 is 0.3.0. */
#define ADJ_VERSION (ADJ_VERSION_MAJOR * 10000 + ADJ_VERSION_MINOR * 100 + ADJ_VERSION_PATCH)
/* The version as text. */
#define ADJ_VERSION_TEXT "0.3.0"

/* Marks the functions and variables that the shared libraries export. */
#define ADJ_API __attribute__((visibility("default")))
#define ADJ_MAX_RANK 6 /* maximum number of axes of a value */

/* Status of a call. The documentation of each function says where it stores the message. */
typedef enum {
    ADJ_OK,        /* nothing is wrong */
    ADJ_EARG,      /* an invalid argument */
    ADJ_ESHAPE,    /* incompatible shapes */
    ADJ_EDTYPE,    /* incompatible element types */
    ADJ_ENOGRAD,   /* an op without a gradient rule was reached */
    ADJ_ENOKERNEL, /* no backend computes this node */
    ADJ_ENOMEM,    /* out of memory, or a plan needs more than is available */
    ADJ_EBACKEND,  /* a backend failed while planning or running */
    ADJ_EIO,       /* a file is missing, truncated, malformed or cannot be written */
    ADJ_EVERSION   /* header and library have different versions */
} adj_status;

enum { ADJ_MESSAGE = 512 }; /* bytes of a message with its final 0; a longer message is truncated */

/* Reason of a failure, for functions without an object that could store it. Such a function takes a
 * pointer to it as its last argument (NULL: no message wanted) and returns the status as well. The
 * struct is written only on failure: initialize it with zeros before the first call; afterwards it
 * holds the last failure, if any. */
typedef struct {
    adj_status status;         /* status of the failed call */
    char message[ADJ_MESSAGE]; /* reason: given and expected values; "" when status is ADJ_OK */
} adj_error;

/* Element types: IEEE 754's binary32, binary64 and binary16; bfloat16; 32-bit integers. */
typedef enum { ADJ_F32, ADJ_F64, ADJ_F16, ADJ_BF16, ADJ_I32 } adj_dtype;
/* Padding at the border of an image, as defined by TensorFlow. VALID: only windows inside the
 * image. SAME: out = ceil(in / stride) results along each axis, with max((out - 1) * stride + (k -
 * 1) * dilation + 1 - in, 0) zeros in total; if that is odd, the extra zero is at the end.
 * EXPLICIT: the field pad has the number of zeros. */
typedef enum { ADJ_VALID, ADJ_SAME, ADJ_EXPLICIT } adj_padding;
/* Order of an image's axes: [batch, height, width, channels] or [batch, channels, height, width].
 */
typedef enum { ADJ_NHWC, ADJ_NCHW } adj_format;

/* Sizes of a row-major value along each axis. Lists of indices (pads, slices) use it too, with rank
 * as their length. */
typedef struct {
    int64_t rank, dim[ADJ_MAX_RANK]; /* number of axes; size of each, 0 or more */
} adj_shape;

/* Size of an image. */
typedef struct {
    int64_t h, w, c; /* height, width, channels */
} adj_image_size;

/* Type of a value: element type and shape. */
typedef struct {
    adj_dtype dtype; /* element type */
    adj_shape shape; /* rank 0: a scalar */
} adj_type;

/* A network: nodes, names, updates and the first error. Created by adj_graph_new. */
typedef struct adj_graph adj_graph;
/* A value of a graph: an op applied to other nodes, or a leaf. Owned by the graph, immutable. */
typedef struct adj_node adj_node;
/* A plan of a graph, with the memory to run it and the values of the parameters. Created by
 * adj_exec_new. */
typedef struct adj_exec adj_exec;
/* A list of assignments {leaf := next}. Owned by the graph. */
typedef struct adj_updates adj_updates;

/* Memory allocator of a graph or an executor. free is never called with NULL. */
typedef struct {
    void *(*alloc)(void *user, size_t bytes); /* returns NULL when out of memory */
    void (*free)(void *user, void *p);        /* frees a block returned by alloc */
    void *user;                               /* handed to both */
} adj_allocator;

/* Returns the name of a status, such as "ok" or "bad argument": a constant string, never NULL. */
ADJ_API const char *adj_status_name(adj_status status);
/* Returns "f32", "f64", "f16", "bf16" or "i32"; "no dtype" for any other value. A constant string.
 */
ADJ_API const char *adj_dtype_name(adj_dtype dtype);
/* Returns the bytes of one element; 0 for a value that is not a dtype. */
ADJ_API size_t adj_dtype_size(adj_dtype dtype);
/* Returns the number of elements of a shape: 1 for a scalar, 0 with an empty axis, -1 for an
 * invalid shape or on overflow. */
ADJ_API int64_t adj_shape_elems(adj_shape shape);
/* Returns the bytes of a value, as adj_set and adj_get expect them; SIZE_MAX for an invalid type or
 * on overflow. */
ADJ_API size_t adj_type_bytes(adj_type type);

/* Fills *error, unless error is NULL, and returns status. For functions of a program that take an
 * adj_error themselves. */
ADJ_API adj_status adj_error_set(adj_error *error, adj_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- graphs ---- */

/* Options of a graph. All zero is the default: malloc and free, with huge pages for large blocks
 * where the system supports madvise, and no hook. */
typedef struct {
    const adj_allocator *allocator; /* copied */
    /* Called once, when the graph records its first error: a place for a breakpoint. NULL: not
     * called. */
    void (*on_error)(void *user, adj_status status, const char *message);
    void *user; /* handed to on_error */
} adj_graph_opts;

/* Returns the version of the loaded library as a number like ADJ_VERSION. The library may be newer
 * than the header. */
ADJ_API int adj_version(void);
/* Returns the version of the loaded library as text, such as "0.3.0": a constant string. */
ADJ_API const char *adj_version_text(void);

/* Creates a graph; returns NULL only when out of memory. version must be ADJ_VERSION. If the
 * library has another major version (before 1.0: another minor version), the graph has the status
 * ADJ_EVERSION. This function, adj_exec_new, adj_compare, adj_gradcheck and adj_model_logits then
 * read no struct of the caller, as its layout may differ. opts may be NULL. */
ADJ_API adj_graph *adj_graph_new_with(int version, const adj_graph_opts *opts);
/* Creates a graph with this header's version and default options. */
static inline adj_graph *adj_graph_new(void) { return adj_graph_new_with(ADJ_VERSION, NULL); }
/* Frees the graph, its nodes, names and updates. Free its executors first. */
ADJ_API void adj_graph_free(adj_graph *g);
/* Returns the status of the graph's first error, which later errors do not replace; ADJ_OK if there
 * was none; ADJ_ENOMEM for NULL. */
ADJ_API adj_status adj_graph_status(const adj_graph *g);
/* Returns the message of the graph's first error, or ""; for NULL "adj_graph_new: out of memory".
 * The string belongs to the graph. */
ADJ_API const char *adj_graph_message(const adj_graph *g);

/* Records the graph's first error ("op: what is wrong (got ..., expected ...)") and returns status.
 * For builders of a program. */
ADJ_API adj_status adj_fail(adj_graph *g, adj_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns the number of nodes. Nodes are numbered from 0 in the order of their creation, so
 * operands come before the nodes that read them. */
ADJ_API int adj_graph_node_count(const adj_graph *g);
/* Returns the node with that number; NULL when out of range. */
ADJ_API adj_node *adj_graph_node_at(const adj_graph *g, int id);
/* Returns the graph of the node; NULL for NULL. */
ADJ_API adj_graph *adj_node_graph(const adj_node *n);
/* Returns the number of the node in its graph; -1 for NULL. */
ADJ_API int adj_node_id(const adj_node *n);
ADJ_API const char *adj_node_op(const adj_node *n); /* the op's name, such as "conv2d" */
/* Returns the name of a leaf, or the label given by adj_label; "" without either. */
ADJ_API const char *adj_node_name(const adj_node *n);
/* Returns element type and shape of the node's value; all zero, an f32 scalar, for NULL. */
ADJ_API adj_type adj_node_type(const adj_node *n);
/* Returns the number of operands; 0 for a leaf and for NULL. */
ADJ_API int adj_node_operand_count(const adj_node *n);
/* Returns the i-th operand; NULL when out of range. */
ADJ_API adj_node *adj_node_operand_at(const adj_node *n, int i);
ADJ_API int adj_node_is_param(const adj_node *n); /* true if the node is a trainable parameter */
ADJ_API int adj_node_is_state(const adj_node *n); /* true if the node is a state: kept between runs,
                                                     updated, but not trained */
/* Returns the leaf of that name, else the first node with that label, or NULL if there is neither.
 */
ADJ_API adj_node *adj_find(const adj_graph *g, const char *name);
/* Gives a node a label for printing and adj_find. A node that has a label keeps it. Returns n. */
ADJ_API adj_node *adj_label(adj_node *n, const char *name);

/* Prints the n roots and all nodes that they depend on, one node a line. Gradient and update nodes
 * are marked. */
ADJ_API void adj_print(FILE *f, int n, adj_node *const roots[]);
/* Prints the same nodes as Graphviz DOT, with a color for each role (adj_role). */
ADJ_API void adj_print_dot(FILE *f, int n, adj_node *const roots[]);

/* Prints the layers that compute y, a line each: name, op, output shape, number of parameters and
 * of multiply-adds; and the sums of both. */
ADJ_API void adj_summary(FILE *f, const adj_node *y);

/* ---- leaves and ops ---- */

#include "adjoint_ops.h"

/* ---- gradients and updates ---- */

/* Adds the nodes that compute the gradients dx[i] = (d y / d x[i])^T dy for i = 0 .. n-1, by
 * reverse-mode differentiation. dy is the upstream gradient, of y's shape and type; NULL means 1,
 * and y must then be a scalar. dx[i] has the shape of x[i], and is zero if y does not depend on
 * x[i]. dx and x may be the same array. Returns the graph's status; on failure every dx[i] is NULL.
 */
ADJ_API adj_status adj_grad(adj_node *y, adj_node *dy, int n, adj_node *const x[], adj_node *dx[]);

/* Creates an empty list of assignments {param or state := next}, which an executor carries out at
 * the end of a run. Owned by the graph; NULL when out of memory. */
ADJ_API adj_updates *adj_updates_new(adj_graph *g);
/* Adds {leaf := next}. leaf is a param or state and next has its type (else ADJ_ESHAPE); each leaf
 * is assigned once (else ADJ_EARG). The graph stores the message. */
ADJ_API adj_status adj_updates_add(adj_updates *u, adj_node *leaf, adj_node *next);
/* Returns a new list with all assignments of a and b; NULL counts as an empty list. */
ADJ_API adj_updates *adj_updates_join(adj_graph *g, const adj_updates *a, const adj_updates *b);

/* Maximum number of shards of a batch. */
enum { ADJ_MAX_SHARDS = 10000 };

/* Options of data-parallel training. All zero is the default. */
typedef struct {
    /* Number of shards of the batch of all processes, a multiple of their number, at most
     * ADJ_MAX_SHARDS; 0: one for each process. A process computes an equal number of consecutive
     * shards, one after the other; its graph has the nodes of each. */
    int shards;
    /* Small values are packed into buffers of up to this many bytes for one reduction; 0: 1 MiB or
     * an eighth of all values, whichever is less, but at least 32 KiB. */
    size_t bucket_bytes;
    /* 1: batch norms use the statistics of the whole batch. The statistics are reduced in the
     * forward pass and the sums of their gradients in the backward pass, so the result is that of
     * one process with the whole batch, running statistics included. The shards of a process are
     * then computed together, layer by layer, and need the memory of all of them. First derivatives
     * only: a gradient that reads these statistics by itself is ADJ_EARG. 0: each shard uses its
     * own statistics. */
    int sync_batch_norm;
} adj_data_parallel_opts;
/* Returns the assignments of u for data-parallel training over that number of processes, of which
 * this one has the number rank, from 0. The graph's batch is one shard of a larger batch. Gradients
 * and statistics of the batch are replaced by their mean over the shards of all processes
 * (adj_all_reduce), so that all processes assign the same values; each shard has the same weight.
 * Where shards have unequal weights in the loss, as with labels of -1 or class weights, multiply
 * the loss by an input of shape [1], of which each shard s has the value S w_s / sum(w), where w_s
 * is the sum of its weights. A sum over the batch is multiplied by S.
 * Clipping by norm applies to the mean. Nodes that depend on inputs other than scalars are copied
 * for each shard of this process; dropout counts elements as in the whole batch. With one process
 * this accumulates gradients in the memory of one shard, unless batch norms are synchronized.
 *
 * Shards are added as a binary tree. With adj_exec_opts.same_bits the result of S shards has the
 * same bits for 1 process, for S processes, and for every number of processes that gives each a
 * power of two of shards.
 *
 * Fetched values are those of this process: `loss` is the loss of its first shard, and
 * adj_shard_node returns the nodes of the others. All processes must start with the same parameters
 * (adj_mpi_broadcast). Half types are summed in f32. options may be NULL. Returns NULL on error;
 * the graph has the message. */
ADJ_API adj_updates *adj_data_parallel(const adj_updates *u, int processes, int rank,
                                       const adj_data_parallel_opts *options);
/* Returns the number of shards of this process; 1 for updates not made by adj_data_parallel. */
ADJ_API int adj_shard_count(const adj_updates *u);
/* Returns the copy of n that belongs to a shard (0 to adj_shard_count - 1), such as an input to set
 * ("x" of shard 2 is "x#2") or a loss to fetch; n itself where all shards use it; NULL when shard
 * is out of range. */
ADJ_API adj_node *adj_shard_node(const adj_updates *u, adj_node *n, int shard);
/* Returns the assignments that the layers of a graph need, such as those of running statistics and
 * step counters; an empty list if there are none. NULL for NULL and when out of memory. */
ADJ_API adj_updates *adj_layer_updates(adj_graph *g);
/* Returns the evaluation form of y, the result of a net built for training: batch norms use their
 * running statistics, and dropout does nothing. Both read the same parameters; y itself if training
 * computes nothing else. NULL on error. */
ADJ_API adj_node *adj_evaluation(adj_node *y);

/* Role of a node: forward pass, gradient or update. The plan runs updates last, in place where
 * possible, and in f32 for any precision; it scales gradients by adj_exec_opts.loss_scale and
 * recomputes forward nodes (adj_exec_opts.recompute) only for gradients. */
typedef enum { ADJ_ROLE_FORWARD, ADJ_ROLE_GRADIENT, ADJ_ROLE_UPDATE } adj_role;

/* ---- executors ---- */

/* Algorithms that kernels may use. EXACT: sums of products as written, in any order. FAST: also
 * faster algorithms with larger rounding errors: Winograd's for 3x3 and 5x5 convolutions in f32 and
 * bf16, and f32 products split into two bf16 terms where the CPU has AMX. */
typedef enum { ADJ_MATH_EXACT, ADJ_MATH_FAST } adj_math;

/* Precision of a plan. AS_BUILT: every value has its node's type. BF16 (mixed precision): f32
 * convolutions and matmuls, and the activations and gradients between them, are stored in bf16 and
 * summed in f32; parameters, statistics, losses, gradients of parameters, updates and fetched
 * values stay f32. F16: likewise with f16; gradients are stored multiplied by loss_scale, so that
 * small ones do not vanish, except gradients of parameters and fetched values. */
typedef enum { ADJ_PRECISION_AS_BUILT, ADJ_PRECISION_BF16, ADJ_PRECISION_F16 } adj_precision;

/* Options of an executor. fetch or updates is required; all zero is the default of the rest. */
typedef struct {
    int n_fetch;                /* number of nodes to fetch */
    adj_node *const *fetch;     /* readable with adj_get after adj_run */
    const adj_updates *updates; /* assignments made at the end of adj_run; NULL: none */
    /* Preferred backend: "direct", "naive", "onednn,max_pool=naive"; NULL: the first of `backends`,
     * "onednn" of the built-in ones. */
    const char *backend;
    /* Backends used instead of the built-in ones, NULL-terminated, in order of preference; the last
     * is the fallback: adj_ranks.backends (adjoint_fit.h), or a list with backends of your own
     * (adjoint_backend.h). NULL: the built-in ones. */
    const struct adj_backend *const *backends;
    /* Number of threads; 0: OpenMP's number, which is that of the processors in the affinity mask
     * unless OMP_NUM_THREADS or omp_set_num_threads sets another. Without OMP_NUM_THREADS it is
     * limited to the whole processors of a control group's quota (cpu.max, cpu.cfs_quota_us). */
    int threads;
    adj_math math;           /* default: ADJ_MATH_EXACT */
    adj_precision precision; /* default: ADJ_PRECISION_AS_BUILT */
    /* Fixed loss scale for ADJ_PRECISION_F16; 0: 1024. Gradients beyond 65504 / loss_scale become
     * infinite, gradients far below 2^-24 / loss_scale become 0. A power of two adds no rounding.
     * Set it to 1 if the optimizer has a dynamic loss scale (adj_optimizer_opts.loss_scale in
     * adjoint_nn.h). */
    double loss_scale;
    uint64_t seed;                  /* seed of the initial values of parameters */
    const adj_allocator *allocator; /* NULL: the graph's allocator; copied */
    /* 1: times the candidates of each step while planning - every implementation of every backend,
     * in each layout - and takes the fastest. The choice is stored in tune_file and reused by later
     * plans on the same machine. 0: takes the candidate with the least estimated time, or the
     * first of equal ones in the order of backends: the same choice on every start. */
    int tune;
    const char *tune_file; /* stores the measurements; a name that ends in / is a folder, in which
                              the file is named after the machine. NULL: the file named by the
                              environment variable ADJOINT_TUNE, if set. An unusable file is ignored
                              and replaced (adj_exec_warning) */
    double tune_seconds;   /* approximate limit of measuring for one plan, in seconds; 0: 5 */
    /* Recomputation (rematerialization) of cheap nodes - activations, batch norm, add - in the
     * backward pass instead of storing their values: less memory, same results. 1: wherever
     * possible, at a small cost in time. 0: only where it is estimated to save time, which needs at
     * least 12 MB of stored values of which at most 55 % remain. -1: nowhere. */
    int recompute;
    /* 1: uses only kernels whose results have the same bits for any number of threads
     * (adj_prep.sums_by_threads is 0). 0: the order of sums may depend on the number of threads. */
    int same_bits;
    const struct adj_exec_debug *debug; /* for checks and debugging (adjoint_ext.h); NULL: none */
} adj_exec_opts;

/* Size and cost of a plan. */
typedef struct {
    size_t arena_bytes;   /* bytes of the arena: values and scratch of one run, which share memory
                             when their lifetimes do not overlap */
    size_t storage_bytes; /* bytes of leaves and of values kept between runs */
    int steps;            /* steps of a run */
    int naive_steps;      /* steps computed by the last backend, naive */
    int threads;          /* threads of a run */
} adj_exec_info;

/* Plans the fetched nodes and updates of a graph. The executor works on a private copy: the graph
 * may grow afterwards. *out holds the message even on failure (it is NULL only when out of memory)
 * and must be freed by adj_exec_free in every case. ADJ_ENOMEM also if the plan needs more memory
 * than is available; the message has both numbers. */
ADJ_API adj_status adj_exec_new(adj_graph *g, const adj_exec_opts *opts, adj_exec **out);
/* Frees the executor, its plan, memory and parameter values. */
ADJ_API void adj_exec_free(adj_exec *e);
/* Returns the graph that the executor was made from; NULL for NULL. */
ADJ_API adj_graph *adj_exec_graph(const adj_exec *e);
/* Returns the message of the last failure, or "". The string belongs to the executor. */
ADJ_API const char *adj_exec_message(const adj_exec *e);
/* Records the message of a failed call ("call: what is wrong (got ..., expected ...)") in place of
 * the last one and returns status. The executor stays usable. One whose plan failed keeps its own
 * message, and its status is returned. For NULL only returns status. For functions of a program
 * that call an executor. */
ADJ_API adj_status adj_exec_fail(adj_exec *e, adj_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Returns a non-fatal warning in one line, or "": a tune file that was ignored, a time limit that
 * was too short to tune every step, a precision without hardware support. */
ADJ_API const char *adj_exec_warning(const adj_exec *e);
/* Copies data into a leaf: row-major, of the leaf's type; bytes is the exact size (adj_type_bytes).
 * Setting a leaf that no fetch and no update needs does nothing. */
ADJ_API adj_status adj_set(adj_exec *e, const adj_node *leaf, const void *data, size_t bytes);
/* Sets a leaf without a copy: *data points to the executor's buffer of the leaf's value, row-major,
 * 64-byte aligned, adj_type_bytes long. The caller may write all or a part of it until the next
 * adj_run, adj_copy_params into this executor or adj_exec_free, and must then call this function
 * again. The leaf counts as set. On failure *data is NULL. ADJ_EARG for a leaf that adj_set
 * refuses, and for one that no fetch and no update needs. */
ADJ_API adj_status adj_set_in_place(adj_exec *e, const adj_node *leaf, void **data);
/* Copies the value of a fetched node or of a leaf to out: row-major; bytes is the exact size. A
 * fetched parameter has its value from before the updates of the last run; a parameter that is not
 * fetched has its current value. Fails for an input that was never set, for a leaf that no fetch
 * and no update needs, and for nodes other than leaves before the first run and after a failed run.
 */
ADJ_API adj_status adj_get(adj_exec *e, const adj_node *node, void *out, size_t bytes);
/* Sets *value to the value of a fetched node or leaf of one element, of any type, such as a loss.
 */
ADJ_API adj_status adj_get_scalar(adj_exec *e, const adj_node *node, double *value);
/* Returns a pointer to the value that adj_get would copy, row-major, or NULL if there is no such
 * value (adj_exec_message has the reason). Valid until the next adj_set, adj_set_in_place, adj_run,
 * adj_copy_params or adj_exec_free. */
ADJ_API const void *adj_data(adj_exec *e, const adj_node *node);
/* Computes the fetched nodes, then the updates. A run that fails on its input values, such as
 * labels out of range, changes no parameter. Values that depend only on constants and on parameters
 * and states that no update assigns are recomputed only after one of these has been set. */
ADJ_API adj_status adj_run(adj_exec *e);
/* Runs n different executors of one thread each (adj_exec_opts.threads = 1) concurrently, each on
 * its own thread, for inference on slices of a batch: no thread waits for another between steps.
 * Returns the status of the first executor in the list that failed (adj_exec_message); the others
 * have run. ADJ_EARG, before anything runs, if an executor has more threads or is listed twice. */
ADJ_API adj_status adj_run_each(int n, adj_exec *const list[]);
/* Copies parameters and states by name. `from` must hold every parameter of `to` and every state
 * that `to` does not update itself (else ADJ_EARG with a list of the missing ones). ADJ_ESHAPE if
 * two values of one name differ in type. On failure nothing is copied. `from` may hold more, such
 * as the states of an optimizer. */
ADJ_API adj_status adj_copy_params(adj_exec *to, const adj_exec *from);
/* Returns the number of parameters and states that the executor holds. */
ADJ_API int adj_exec_param_count(const adj_exec *e);
/* Returns the i-th parameter or state; NULL when out of range. */
ADJ_API adj_node *adj_exec_param_at(const adj_exec *e, int i);
/* Prints the plan: each step with its kernel, layouts, position in the arena, and why a preferred
 * backend does not compute it. Prints the reason if there is no plan. */
ADJ_API void adj_exec_print(FILE *f, const adj_exec *e);
/* Returns the size and cost of the plan; all zero if there is no plan. */
ADJ_API adj_exec_info adj_exec_stats(const adj_exec *e);

#ifdef __cplusplus
}
#endif
#endif
