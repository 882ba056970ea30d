/* adjoint.h - build, differentiate and run small convolutional networks on a CPU.
 *
 * A network is a graph of immutable nodes; a node is one value. Builders such as adj_conv2d() add a
 * node and return it; adj_grad() adds the nodes that compute a gradient; an executor (adj_exec)
 * plans a set of nodes over a backend and runs them.
 *
 * Errors. A builder that is given something impossible returns NULL and the graph keeps the first
 * error: a status and one sentence (adj_graph_status, adj_graph_message). Builders accept NULL
 * operands and return NULL silently, so one check at the end of a model is enough. Everything else
 * returns an adj_status; the sentence is kept at the object that failed. Nothing in the library
 * prints, aborts or exits.
 *
 * Ownership. A graph owns its nodes, names and updates; an executor owns its plan, parameter values
 * and memory. Data passed in is copied. Executors are freed before their graph. Every *_free(NULL)
 * does nothing.
 *
 * Threads. A graph: one thread while it grows, any number of readers afterwards. An executor: one
 * thread at a time. Different executors share no mutable state.
 *
 * Versions. Before 1.0 each minor version may change structs: the shared library's name carries it
 * (libadjoint.so.0.2), and a graph made with another version's header is refused (ADJ_EVERSION).
 *
 * Counting. x_count says how many there are, x_at(i) gives the i-th of them, 0 the first.
 *
 * Environment. Read by adj_exec_new, which fails on what it cannot take; empty is as not set:
 *   ADJOINT_PLAN        adds to all executors' options "unfused" (adj_exec_debug.no_fusion), "tune"
 *                       (tune, for 0.05 s a plan where the options did not ask for it), or
 *                       "unfused,tune". Another word: ADJ_EARG
 *   ADJOINT_MAX_ISA     the CPU's instructions that the backend "direct" uses, when a plan needs
 *                       it: up to "base", "avx2" or "avx512". Another word: ADJ_EARG. oneDNN's
 *                       limit is its own ONEDNN_MAX_CPU_ISA
 *   ADJOINT_QUARANTINE  in place of adj_exec_debug.quarantine where that is NULL, when a plan needs
 *                       the backend "onednn": FILE, "only:FILE" or "off". ADJ_EIO if the file
 *                       cannot be read
 *   ADJOINT_TUNE        the tune file, where there is tuning and adj_exec_opts.tune_file is NULL */
#ifndef ADJOINT_H
#define ADJOINT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ADJ_VERSION_MAJOR 0
#define ADJ_VERSION_MINOR 2
#define ADJ_VERSION_PATCH 0
#define ADJ_VERSION (ADJ_VERSION_MAJOR * 10000 + ADJ_VERSION_MINOR * 100 + ADJ_VERSION_PATCH)
#define ADJ_VERSION_TEXT "0.2.0"

#define ADJ_API __attribute__((visibility("default")))
#define ADJ_MAX_RANK 6

typedef enum {
    ADJ_OK,
    ADJ_EARG,      /* an argument that is never right */
    ADJ_ESHAPE,    /* shapes that do not fit each other */
    ADJ_EDTYPE,    /* element types that do not fit each other */
    ADJ_ENOGRAD,   /* an op without a gradient rule was reached */
    ADJ_ENOKERNEL, /* no backend computes this node */
    ADJ_ENOMEM,
    ADJ_EBACKEND, /* a backend failed while planning or running */
    ADJ_EIO,      /* a file: missing, truncated, lying */
    ADJ_EVERSION  /* the header and the library differ */
} adj_status;

typedef enum { ADJ_F32, ADJ_F64, ADJ_F16, ADJ_BF16, ADJ_I32 } adj_dtype;
typedef enum { ADJ_VALID, ADJ_SAME, ADJ_EXPLICIT } adj_padding;
typedef enum { ADJ_NHWC, ADJ_NCHW } adj_format;

/* Row-major sizes; also used for lists of indices (pads, slices), where rank is the list's length.
 */
typedef struct {
    int64_t rank, dim[ADJ_MAX_RANK];
} adj_shape;

typedef struct {
    adj_dtype dtype;
    adj_shape shape;
} adj_type;

typedef struct adj_graph adj_graph;
typedef struct adj_node adj_node;
typedef struct adj_exec adj_exec;
typedef struct adj_updates adj_updates;

/* Memory for a graph or an executor. alloc returns NULL when out of memory; free is never called
 * with NULL. */
typedef struct {
    void *(*alloc)(void *user, size_t bytes);
    void (*free)(void *user, void *p);
    void *user;
} adj_allocator;

/* "ok", "bad argument", ...; "f32", ...: constant strings, never NULL. */
ADJ_API const char *adj_status_name(adj_status status);
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

/* ---- graphs ---- */

/* All zero is the default: malloc and free, no hook. */
typedef struct {
    const adj_allocator *allocator; /* copied */
    /* Called once, when the graph's first error is recorded: the place for a breakpoint. */
    void (*on_error)(void *user, adj_status status, const char *message);
    void *user;
} adj_graph_opts;

/* Of the library that runs, which may be newer than the header: as ADJ_VERSION, and as text. */
ADJ_API int adj_version(void);
ADJ_API const char *adj_version_text(void);

/* NULL only when out of memory. version is ADJ_VERSION; a library of another major version - before
 * 1.0, of another minor one - gives a graph whose status is ADJ_EVERSION, and reads no struct of
 * its caller's: sizes and fields may differ. Nor do adj_exec_new, adj_compare, adj_gradcheck and
 * adj_model_logits with that graph. opts may be NULL. */
ADJ_API adj_graph *adj_graph_new_with(int version, const adj_graph_opts *opts);
static inline adj_graph *adj_graph_new(void) { return adj_graph_new_with(ADJ_VERSION, NULL); }
ADJ_API void adj_graph_free(adj_graph *g);
/* The first error, sticky; ADJ_OK and "" if there was none. For g == NULL: ADJ_ENOMEM. */
ADJ_API adj_status adj_graph_status(const adj_graph *g);
ADJ_API const char *adj_graph_message(const adj_graph *g);

/* For builders of your own: records the graph's first error ("op: what is wrong (got ..., expected
 * ...)") and returns status. */
ADJ_API adj_status adj_fail(adj_graph *g, adj_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Looking at a graph. Nodes are numbered from 0 in the order of their creation: operands come
 * before their users. */
ADJ_API int adj_graph_node_count(const adj_graph *g);
ADJ_API adj_node *adj_graph_node_at(const adj_graph *g, int id); /* NULL when out of range */
ADJ_API adj_graph *adj_node_graph(const adj_node *n);
ADJ_API int adj_node_id(const adj_node *n);
ADJ_API const char *adj_node_op(const adj_node *n); /* "conv2d" */
ADJ_API const char *
adj_node_name(const adj_node *n); /* a leaf's name or the label given by adj_label; "" */
ADJ_API adj_type adj_node_type(const adj_node *n);
ADJ_API int adj_node_operand_count(const adj_node *n);
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
ADJ_API void adj_print_dot(FILE *f, int n, adj_node *const roots[]);

/* ---- leaves ---- */

typedef enum {
    ADJ_INIT_CONSTANT,
    ADJ_INIT_UNIFORM,
    ADJ_INIT_NORMAL,
    ADJ_INIT_HALVES
} adj_init_kind;
/* CONSTANT: a. UNIFORM: [a, b). NORMAL: mean a, standard deviation b. HALVES: the first half of the
 * elements is a, the rest b. Drawn from the executor's seed and the name. */
typedef struct {
    adj_init_kind kind;
    double a, b;
} adj_init;

/* Leaves' names are unique within a graph, and not empty; a label that is in use is taken. */
ADJ_API adj_node *adj_input(adj_graph *g, const char *name, adj_dtype dtype, adj_shape shape);
ADJ_API adj_node *adj_param(adj_graph *g, const char *name, adj_dtype dtype, adj_shape shape,
                            adj_init init);
/* A parameter that is not trained: running statistics, optimiser state, counters. */
ADJ_API adj_node *adj_state(adj_graph *g, const char *name, adj_dtype dtype, adj_shape shape,
                            adj_init init);
/* data: row-major, adj_shape_elems(shape) elements; copied. */
ADJ_API adj_node *adj_const(adj_graph *g, adj_dtype dtype, adj_shape shape, const void *data);
/* Every element is value. */
ADJ_API adj_node *adj_fill(adj_graph *g, adj_dtype dtype, adj_shape shape, double value);

/* ---- convolutions (TensorFlow's contract) ---- */

/* strides, dilations and pads in data_format order, as TensorFlow has them. An array that is all
 * zero is the default (ones; no pads); a single zero in stride or dilation is an error. pad is
 * given exactly with ADJ_EXPLICIT. Filters are [kh, kw, in, out], depthwise [kh, kw, in,
 * multiplier], in both formats. */
typedef struct {
    int64_t stride[4], dilation[4], pad[4][2];
    adj_padding padding;
    adj_format format;
} adj_conv;

/* y[n,oh,ow,o] = sum over kh,kw,c of x[n, oh*sh + kh*dh - ph, ow*sw + kw*dw - pw, c] *
 * w[kh,kw,c,o]. A filter whose in divides x's channels is a grouped convolution. NULL attributes:
 * all default (VALID, NHWC). */
ADJ_API adj_node *adj_conv2d(adj_node *x, adj_node *w, const adj_conv *a);
/* input_sizes: the shape of x, or only its height and width. */
ADJ_API adj_node *adj_conv2d_backprop_input(adj_shape input_sizes, adj_node *w, adj_node *dy,
                                            const adj_conv *a);
ADJ_API adj_node *adj_conv2d_backprop_filter(adj_node *x, adj_shape filter_sizes, adj_node *dy,
                                             const adj_conv *a);
/* y[.., c*multiplier + m] = sum over kh,kw of x[.., c] * w[kh,kw,c,m]. */
ADJ_API adj_node *adj_depthwise_conv2d_native(adj_node *x, adj_node *w, const adj_conv *a);
ADJ_API adj_node *adj_depthwise_conv2d_native_backprop_input(adj_shape input_sizes, adj_node *w,
                                                             adj_node *dy, const adj_conv *a);
ADJ_API adj_node *adj_depthwise_conv2d_native_backprop_filter(adj_node *x, adj_shape filter_sizes,
                                                              adj_node *dy, const adj_conv *a);
/* The convolution's transpose: w is [kh, kw, out, in], output_shape has four entries. */
ADJ_API adj_node *adj_conv2d_transpose(adj_node *x, adj_node *w, adj_shape output_shape,
                                       const adj_conv *a);
/* A depthwise convolution with the attributes, then a 1x1 convolution. pointwise: [1, 1,
 * in*multiplier, out]. */
ADJ_API adj_node *adj_separable_conv2d(adj_node *x, adj_node *depthwise, adj_node *pointwise,
                                       const adj_conv *a);

/* ---- pooling ---- */

/* ksize, stride and pad in data_format order; ksize is required, an all-zero stride means ksize.
 * EXPLICIT is for max_pool only, and so is a window over channels: 1x1 in space and its own stride.
 */
typedef struct {
    int64_t ksize[4], stride[4], pad[4][2];
    adj_padding padding;
    adj_format format;
} adj_pool;

/* The largest element of each window; NaN is larger than any number. */
ADJ_API adj_node *adj_max_pool(adj_node *x, const adj_pool *a);
/* dy (shaped as y) goes to the first maximum of each window in row-major order: shaped as x. */
ADJ_API adj_node *adj_max_pool_grad(adj_node *x, adj_node *y, adj_node *dy, const adj_pool *a);
/* The elements of e (shaped as x) at each window's first maximum: the adjoint of max_pool_grad. */
ADJ_API adj_node *adj_max_pool_grad_grad(adj_node *x, adj_node *y, adj_node *e, const adj_pool *a);
/* The mean over a window's valid elements, and its gradient for an x of input_shape. */
ADJ_API adj_node *adj_avg_pool(adj_node *x, const adj_pool *a);
ADJ_API adj_node *adj_avg_pool_grad(adj_shape input_shape, adj_node *dy, const adj_pool *a);
/* [n,h,w,c] or [n,c,h,w] -> [n,c]. */
ADJ_API adj_node *adj_global_avg_pool(adj_node *x, adj_format format);

/* The same attributes from lists with lengths and from words ("SAME", "NHWC"): for command lines,
 * files and tests. A NULL list with length 0 is absent. Every rule on the attributes alone is
 * checked here; those that need shapes, by the builders. On failure the sentence is written to
 * message (may be NULL), at most size bytes. */
typedef struct {
    int n_ksize, n_strides, n_dilations, n_explicit_paddings;
    const int64_t *ksize, *strides, *dilations,
        *explicit_paddings;            /* explicit_paddings: flat, 8 numbers */
    const char *padding, *data_format; /* NULL data_format: "NHWC" */
} adj_attr_lists;
ADJ_API adj_status adj_conv_from_attrs(const adj_attr_lists *lists, adj_conv *a, char *message,
                                       size_t size);
ADJ_API adj_status adj_pool_from_attrs(const adj_attr_lists *lists, adj_pool *a, char *message,
                                       size_t size);
/* What one of the six convolutions, or a pool or a gradient of one, was built with, defaults filled
 * in. 0 and *a as it was: n is no such node. */
ADJ_API int adj_node_conv(const adj_node *n, adj_conv *a);
ADJ_API int adj_node_pool(const adj_node *n, adj_pool *a);
/* More than ADJ_MAX_RANK entries: ADJ_ESHAPE. Entries are not checked here. */
ADJ_API adj_status adj_shape_from_list(int n, const int64_t *list, adj_shape *shape);

/* ---- resizing ---- */

/* Where in an input of size `in` output o of `out` reads:
 *   HALF_PIXEL     (o + 1/2) in / out - 1/2, not below 0
 *   ALIGN_CORNERS  o (in - 1) / (out - 1); 0 if out is 1
 *   ASYMMETRIC     o in / out
 * NEAREST takes the nearest element, of two the later one; ASYMMETRIC the one before. BILINEAR
 * weights the two neighbours along each axis; one of weight 0 is not read. ONNX's Resize has these
 * names (nearest_mode round_prefer_ceil; floor for ASYMMETRIC). PyTorch's interpolate: bilinear
 * with align_corners false is HALF_PIXEL, nearest-exact too; nearest is ASYMMETRIC. */
typedef enum { ADJ_NEAREST, ADJ_BILINEAR } adj_resize_mode;
typedef enum { ADJ_HALF_PIXEL, ADJ_ALIGN_CORNERS, ADJ_ASYMMETRIC } adj_coordinates;
typedef struct {
    adj_resize_mode mode;
    adj_coordinates coordinates;
    adj_format format;
} adj_sampling;

/* x is 4-D; height and width are the result's, 1 to INT32_MAX, as x's must be. NULL attributes: all
 * default (NEAREST, HALF_PIXEL, NHWC). Other shapes: ADJ_ESHAPE; other attributes: ADJ_EARG. */
ADJ_API adj_node *adj_resize(adj_node *x, int64_t height, int64_t width, const adj_sampling *a);
/* Its adjoint: height and width are x's, dy is shaped as the result. */
ADJ_API adj_node *adj_resize_grad(adj_node *dy, int64_t height, int64_t width,
                                  const adj_sampling *a);

/* ---- bias and activations ---- */

/* x has rank 2 to 5; b [c] is added along the last axis (ADJ_NHWC) or axis 1 (ADJ_NCHW). */
ADJ_API adj_node *adj_bias_add(adj_node *x, adj_node *b, adj_format format);
/* [c]: the sum over the other axes. */
ADJ_API adj_node *adj_bias_add_grad(adj_node *dy, adj_format format);

ADJ_API adj_node *adj_relu(adj_node *x);
ADJ_API adj_node *adj_relu6(adj_node *x);
ADJ_API adj_node *adj_leaky_relu(adj_node *x, double alpha);
ADJ_API adj_node *adj_sigmoid(adj_node *x);
ADJ_API adj_node *adj_tanh(adj_node *x);
ADJ_API adj_node *adj_silu(adj_node *x);
ADJ_API adj_node *adj_hard_sigmoid(adj_node *x); /* min(max(x + 3, 0), 6) / 6 */
ADJ_API adj_node *adj_hard_swish(adj_node *x);   /* x hard_sigmoid(x) */
/* min(max(x, min), max), as ONNX's Clip and PyTorch's clamp: max everywhere if min is larger. The
 * bounds are numbers or infinite; a NaN is ADJ_EARG. x is compared with them as they are. */
ADJ_API adj_node *adj_clip(adj_node *x, double min, double max);
/* x where x > 0, else alpha (exp(x) - 1), as ONNX's and PyTorch's. alpha not finite: ADJ_EARG. */
ADJ_API adj_node *adj_elu(adj_node *x, double alpha);
/* x P(x), P being the normal distribution's cumulative function, (1 + erf(x / sqrt(2))) / 2. TANH
 * is its approximation x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2. As ONNX's and PyTorch's
 * (approximate "none" and "tanh"). Another form: ADJ_EARG. */
typedef enum { ADJ_GELU_ERF, ADJ_GELU_TANH } adj_gelu_form;
ADJ_API adj_node *adj_gelu(adj_node *x, adj_gelu_form form);
/* x where x > 0, else slope x. x has rank 2 to 5; slope is [c], one for each channel, where
 * adj_bias_add has it, or [1]; else ADJ_ESHAPE. As PyTorch's, and ONNX's with such a slope. */
ADJ_API adj_node *adj_prelu(adj_node *x, adj_node *slope, adj_format format);
/* Gradients in terms of the result y (relu's and leaky_relu's features do as well); those of the
 * ops from silu on in terms of x. */
ADJ_API adj_node *adj_relu_grad(adj_node *dy, adj_node *y);
ADJ_API adj_node *adj_relu6_grad(adj_node *dy, adj_node *y);
ADJ_API adj_node *adj_leaky_relu_grad(adj_node *dy, adj_node *y, double alpha);
ADJ_API adj_node *adj_sigmoid_grad(adj_node *dy, adj_node *y);
ADJ_API adj_node *adj_tanh_grad(adj_node *dy, adj_node *y);
ADJ_API adj_node *adj_silu_grad(adj_node *dy, adj_node *x);
ADJ_API adj_node *adj_hard_sigmoid_grad(adj_node *dy, adj_node *x);
ADJ_API adj_node *adj_hard_swish_grad(adj_node *dy, adj_node *x);
/* dy where min <= x <= max, else 0. */
ADJ_API adj_node *adj_clip_grad(adj_node *dy, adj_node *x, double min, double max);
ADJ_API adj_node *adj_elu_grad(adj_node *dy, adj_node *x, double alpha);
ADJ_API adj_node *adj_gelu_grad(adj_node *dy, adj_node *x, adj_gelu_form form);
/* dy where x > 0, else slope dy; and [slopes], c or 1: the sum of x dy where x <= 0, over all axes,
 * or all but the channel's. */
ADJ_API adj_node *adj_prelu_grad(adj_node *dy, adj_node *x, adj_node *slope, adj_format format);
ADJ_API adj_node *adj_prelu_grad_slope(adj_node *dy, adj_node *x, int64_t slopes,
                                       adj_format format);

/* ---- elementwise, with broadcasting as in NumPy; operands have one dtype ---- */

ADJ_API adj_node *adj_add(adj_node *a, adj_node *b);
ADJ_API adj_node *adj_sub(adj_node *a, adj_node *b);
ADJ_API adj_node *adj_mul(adj_node *a, adj_node *b);
ADJ_API adj_node *adj_div(adj_node *a, adj_node *b);
ADJ_API adj_node *adj_maximum(adj_node *a, adj_node *b); /* the gradient of a tie goes to a */
ADJ_API adj_node *adj_minimum(adj_node *a, adj_node *b);
ADJ_API adj_node *adj_equal(adj_node *a, adj_node *b); /* 1 or 0; no gradient flows */
ADJ_API adj_node *adj_greater_equal(adj_node *a, adj_node *b);
ADJ_API adj_node *adj_neg(adj_node *x);
ADJ_API adj_node *adj_scale(adj_node *x, double factor);
ADJ_API adj_node *adj_square(adj_node *x);
ADJ_API adj_node *adj_sqrt(adj_node *x);
ADJ_API adj_node *adj_exp(adj_node *x);
ADJ_API adj_node *adj_log(adj_node *x);
/* Rounds to nearest even; to i32 truncates. */
ADJ_API adj_node *adj_cast(adj_node *x, adj_dtype dtype);
/* x itself; adj_grad sees a constant. */
ADJ_API adj_node *adj_stop_gradient(adj_node *x);

/* ---- matrices and shapes ---- */

enum { ADJ_TRANSPOSE_A = 1, ADJ_TRANSPOSE_B = 2 };
/* a b, for matrices; those of the flags transposed first. */
ADJ_API adj_node *adj_matmul(adj_node *a, adj_node *b, unsigned transposed);
/* One entry of shape may be -1: whatever is left. */
ADJ_API adj_node *adj_reshape(adj_node *x, adj_shape shape);
/* Result axis i is x's axis perm[i]; n is x's rank. */
ADJ_API adj_node *adj_transpose(adj_node *x, int n, const int perm[]);
ADJ_API adj_node *adj_concat(int n, adj_node *const x[], int axis);
/* Zeros around x; both lists have x's rank. */
ADJ_API adj_node *adj_pad(adj_node *x, adj_shape before, adj_shape after);
ADJ_API adj_node *adj_slice(adj_node *x, adj_shape begin, adj_shape size);
ADJ_API adj_node *adj_broadcast_to(adj_node *x, adj_shape shape);

enum { ADJ_ALL = -1 };
/* Axes to reduce over: n of them, or ADJ_ALL. Negative axes count from the end. */
typedef struct {
    int n, axis[ADJ_MAX_RANK];
    int keep_dims;
} adj_axes;
ADJ_API adj_node *adj_reduce_sum(adj_node *x, adj_axes axes);
ADJ_API adj_node *adj_reduce_mean(adj_node *x, adj_axes axes);
ADJ_API adj_node *adj_reduce_max(adj_node *x, adj_axes axes); /* ties share the gradient equally */

/* ---- normalisation, loss, dropout ---- */

/* x has rank 2 to 5, the channel axis as in adj_bias_add; gamma and beta are [c]. Statistics,
 * gamma, beta and sums are f32 for half x, else of x's type. */
/* [2, c]: mean and biased variance over the other axes. Exact sums in a fixed order. */
ADJ_API adj_node *adj_batch_norm_stats(adj_node *x, adj_format format);
/* (x - mean) / sqrt(variance + epsilon) * gamma + beta; stats from adj_batch_norm_stats(x) or
 * running ones. */
ADJ_API adj_node *adj_batch_norm(adj_node *x, adj_node *stats, adj_node *gamma, adj_node *beta,
                                 double epsilon, adj_format format);
/* [2, c]: dgamma and dbeta. */
ADJ_API adj_node *adj_batch_norm_grad_sums(adj_node *x, adj_node *stats, adj_node *dy,
                                           double epsilon, adj_format format);
/* dx of a training batch norm, stats being those of x. */
ADJ_API adj_node *adj_batch_norm_grad(adj_node *x, adj_node *stats, adj_node *gamma, adj_node *dy,
                                      adj_node *sums, double epsilon, adj_format format);

/* The same with mean and biased variance of each group of channels of each image by itself, as
 * PyTorch's GroupNorm; groups divides the channels. x's rank and types are batch norm's. */
ADJ_API adj_node *adj_group_norm(adj_node *x, adj_node *gamma, adj_node *beta, int64_t groups,
                                 double epsilon, adj_format format);
/* [2, c]: dgamma and dbeta; dx. */
ADJ_API adj_node *adj_group_norm_grad_sums(adj_node *x, adj_node *dy, int64_t groups,
                                           double epsilon, adj_format format);
ADJ_API adj_node *adj_group_norm_grad(adj_node *x, adj_node *gamma, adj_node *dy, int64_t groups,
                                      double epsilon, adj_format format);
/* Over x's last axes, as many as gamma and beta have, which are of that shape: PyTorch's LayerNorm.
 * With gamma [c] each pixel of an NHWC image is normalised over its channels, as in ConvNeXt. Made
 * of group norm with one group, as is its gradient. */
ADJ_API adj_node *adj_layer_norm(adj_node *x, adj_node *gamma, adj_node *beta, double epsilon);

/* Over the last axis. */
ADJ_API adj_node *adj_softmax(adj_node *x);
ADJ_API adj_node *adj_log_softmax(adj_node *x);
/* logits and labels [n, k] -> loss [n]. smoothing s: labels become (1-s)*labels + s/k. */
ADJ_API adj_node *adj_softmax_cross_entropy(adj_node *logits, adj_node *labels, double smoothing);
/* softmax(logits) - labels, whatever the labels sum to. [n, k] */
ADJ_API adj_node *adj_softmax_cross_entropy_grad(adj_node *logits, adj_node *labels,
                                                 double smoothing);
/* labels: i32 [n], each 0 to k-1, or -1: that row's loss and gradient are 0. Others fail adj_run
 * with ADJ_EARG. Loss [n], gradient [n, k]. */
ADJ_API adj_node *adj_sparse_softmax_cross_entropy(adj_node *logits, adj_node *labels,
                                                   double smoothing);
ADJ_API adj_node *adj_sparse_softmax_cross_entropy_grad(adj_node *logits, adj_node *labels,
                                                        double smoothing);
/* How many of the i32 labels are not negative, at least 1: a scalar of dtype. No gradient flows. */
ADJ_API adj_node *adj_label_count(adj_node *labels, adj_dtype dtype);

/* Zeroes each element with probability rate and scales the others by 1/(1-rate). step: i32 scalar;
 * the same (step, seed) gives the same mask on every backend and for any number of threads
 * (Philox4x32-10). */
ADJ_API adj_node *adj_dropout(adj_node *x, adj_node *step, double rate, uint64_t seed);

/* ---- what optimisers are made of ---- */

/* mu*v + g + decay*p. */
ADJ_API adj_node *adj_momentum(adj_node *v, adj_node *g, adj_node *p, double mu, double decay);
/* p - lr*(d + decay*p); lr: scalar of p's dtype. */
ADJ_API adj_node *adj_sgd_step(adj_node *p, adj_node *d, adj_node *lr, double decay);
/* beta*m + (1-beta)*x. */
ADJ_API adj_node *adj_ema(adj_node *m, adj_node *x, double beta);
typedef struct {
    double beta1, beta2, epsilon, decay; /* decay: decoupled (AdamW) */
} adj_adam_attrs;
/* p - lr*(m/(1-beta1^t) / (sqrt(v/(1-beta2^t)) + epsilon) + decay*p); t: i32 scalar, 1 in the first
 * step. */
ADJ_API adj_node *adj_adam_step(adj_node *p, adj_node *m, adj_node *v, adj_node *t, adj_node *lr,
                                const adj_adam_attrs *a);
/* i32 scalar + 1. */
ADJ_API adj_node *adj_next_step(adj_node *step);

/* ---- gradients and updates ---- */

/* dx[i] = d y / d x[i], seeded with dy (shaped as y; NULL: ones, and y must be a scalar). What y
 * does not depend on gets zeros. dx may be x. Returns the graph's status; on failure every dx[i] is
 * NULL. */
ADJ_API adj_status adj_grad(adj_node *y, adj_node *dy, int n, adj_node *const x[], adj_node *dx[]);

/* Assignments {param or state := next} that an executor makes at the end of a run. Owned by the
 * graph. */
ADJ_API adj_updates *adj_updates_new(adj_graph *g);
ADJ_API adj_status adj_updates_add(adj_updates *u, adj_node *leaf, adj_node *next);
/* All of a and b, in a new object; NULL operands count as empty. */
ADJ_API adj_updates *adj_updates_join(adj_graph *g, const adj_updates *a, const adj_updates *b);
ADJ_API int adj_updates_count(const adj_updates *u);
ADJ_API adj_node *adj_updates_leaf_at(const adj_updates *u, int i);
ADJ_API adj_node *adj_updates_next_at(const adj_updates *u, int i);
/* Assignments that layers added while a model was built (running statistics, step counters). */
ADJ_API void adj_layer_update_add(adj_node *leaf, adj_node *next);
ADJ_API adj_updates *adj_layer_updates(adj_graph *g);

/* What a node is made for. Printed; and the plan runs updates last, in place where it can, and in
 * f32 whatever the precision; scales gradients by adj_exec_opts.loss_scale; and computes forward
 * nodes again (adj_exec_opts.recompute) for gradients only. */
typedef enum { ADJ_ROLE_FORWARD, ADJ_ROLE_GRADIENT, ADJ_ROLE_UPDATE } adj_role;
/* The role of the nodes made from now on; adj_grad gives its own the role GRADIENT. A node that
 * exists already keeps the role that it was made in. Returns the role until now, to be set again
 * afterwards. ADJ_EARG for another value. */
ADJ_API adj_role adj_graph_set_role(adj_graph *g, adj_role role);

/* ---- executors ---- */

/* EXACT: sums of products as they stand, in any order. FAST: also algorithms with fewer
 * multiplications and larger rounding errors (Winograd's, for 3x3 convolutions in f32). */
typedef enum { ADJ_MATH_EXACT, ADJ_MATH_FAST } adj_math;

/* AS_BUILT: every value in its node's type. BF16: f32 convolutions, matmuls and what lies between
 * them (activations and their gradients) are stored in bf16 and summed in f32; parameters,
 * statistics, losses, gradients of parameters and updates stay f32, and so does what is fetched.
 * F16: the same in f16, where gradients are stored loss_scale times as large, so that small ones do
 * not vanish; those of parameters, and what is fetched, have their size. */
typedef enum { ADJ_PRECISION_AS_BUILT, ADJ_PRECISION_BF16, ADJ_PRECISION_F16 } adj_precision;

/* For checking, comparing and finding faults; each costs something. All zero: none of it. */
typedef struct {
    FILE *trace;      /* the graph is printed here after each pass */
    const char *impl; /* take candidates whose implementation's name contains this, if there are */
    int no_fusion;    /* every node of the graph as it was built is a step of its own */
    /* Implementations that are not to be used, beside those known to be wrong: a file of them, as
     * adjoint selftest writes it. "only:FILE": no others. "off": none is left out. "": the known
     * ones. NULL: what the environment's ADJOINT_QUARANTINE says, if it does. */
    const char *quarantine;
    int profile;  /* time every step: adj_exec_step_at */
    int canaries; /* words around all memory, looked at after every step: adj_run fails with
                     ADJ_EBACKEND when a kernel has written where it must not */
    /* Instead of the built-in backends: NULL-ended, the last computes what no other does. For
     * authors of backends (adjoint_ext.h) and tests. */
    const struct adj_backend *const *backends;
} adj_exec_debug;

/* All zero is the default but for what to compute. */
typedef struct {
    int n_fetch;
    adj_node *const *fetch;     /* readable with adj_get after adj_run */
    const adj_updates *updates; /* made at the end of adj_run */
    const char *backend;        /* NULL: "onednn"; "naive"; "onednn,max_pool=naive" */
    int threads;                /* 0: what OpenMP would take */
    adj_math math;
    adj_precision precision;
    /* Of F16; 0: 1024. A stored gradient beyond 65504 / loss_scale is infinite, one far below
     * 2^-24 / loss_scale is 0. A power of two rounds nothing. */
    double loss_scale;
    uint64_t seed;                  /* of the parameters' initial values */
    const adj_allocator *allocator; /* NULL: the graph's; copied */
    /* Times the candidates of each step while planning - every implementation that the backends
     * offer, in each layout - and takes the fastest; otherwise a fixed order decides. What was
     * found is kept in tune_file and not timed again by the next plan on the same machine (NULL:
     * the file that the environment's ADJOINT_TUNE names, if it does; a file that cannot be used is
     * ignored and written anew: adj_exec_warning). A given choice gives the same results every
     * time.
     */
    int tune;
    const char *tune_file;
    double tune_seconds; /* about as long may one plan take for it; 0: 5 */
    /* What is cheap to compute again - relu and its like, batch norm, add - is not kept for the
     * gradient, but computed again from what is kept: less memory, hardly more time, the same
     * results (in f16 roundings may move). */
    int recompute;
    adj_exec_debug debug;
} adj_exec_opts;

typedef struct {
    size_t arena_bytes; /* values and scratch of one run, shared by lifetime */
    size_t live_bytes;  /* the largest sum of buffers alive at one step: the arena's lower bound */
    size_t storage_bytes; /* leaves and what is kept between runs */
    int steps, reorders, naive_steps;
    int timed;      /* candidates that tune has run */
    int remembered; /* steps chosen by the tune file */
    double plan_seconds;
} adj_exec_info;

/* Plans the fetches and updates. The executor works on a private copy: the graph may grow
 * afterwards. *out is a handle to ask for the message even on failure (NULL only when out of
 * memory) and must be freed in every case. ADJ_ENOMEM also where malloc's memory obviously would
 * not do: the message says how much is needed and how much is there. */
ADJ_API adj_status adj_exec_new(adj_graph *g, const adj_exec_opts *opts, adj_exec **out);
ADJ_API void adj_exec_free(adj_exec *e);
ADJ_API const char *adj_exec_message(const adj_exec *e);
/* What the user should know though all went well, one line: a tune file that was ignored, and why;
 * time that was too short to tune every step. "": nothing. */
ADJ_API const char *adj_exec_warning(const adj_exec *e);
/* Copies a leaf's value in, or a fetched node's (or a leaf's) value out: row-major, bytes its exact
 * size. A leaf that neither fetches nor updates need may be set, which does nothing, and has no
 * value to get; nor has an input that was never set, nor another node after a run that failed. A
 * fetched parameter shows the value from before the last run's updates, any other its current
 * value. */
ADJ_API adj_status adj_set(adj_exec *e, const adj_node *leaf, const void *data, size_t bytes);
ADJ_API adj_status adj_get(adj_exec *e, const adj_node *node, void *out, size_t bytes);
/* Where the value that adj_get would copy lies, row-major: to be read until the next adj_set,
 * adj_run, adj_copy_params or adj_exec_free. NULL: there is none, and adj_exec_message says why. */
ADJ_API const void *adj_data(adj_exec *e, const adj_node *node);
/* A run that fails on what it was given (labels out of range) changes no parameter. What follows
 * only from parameters and states that no update assigns, and constants, is computed anew only when
 * one of these has been set. */
ADJ_API adj_status adj_run(adj_exec *e);
/* By name: every parameter and state of `to` that `from` has too. ADJ_ESHAPE if types differ. */
ADJ_API adj_status adj_copy_params(adj_exec *to, const adj_exec *from);
/* The parameters and states that the executor holds, as nodes of the user's graph. */
ADJ_API int adj_exec_param_count(const adj_exec *e);
ADJ_API adj_node *adj_exec_param_at(const adj_exec *e, int i);
ADJ_API void adj_exec_print(FILE *f, const adj_exec *e);
ADJ_API adj_exec_info adj_exec_stats(const adj_exec *e);

/* A backend's version and the instruction set it uses here, "2.6.3 avx512_core"; "* *" if it has
 * neither. ADJ_EARG if there is no such backend. */
ADJ_API adj_status adj_backend_describe(const char *backend, char *text, size_t size);

/* One step of the plan; strings live as long as the executor. */
typedef struct {
    const char *op, *name;      /* of the first node it computes; "reorder" or "copy" */
    const char *backend, *impl; /* "" for copies */
    const char *why;            /* why a preferred backend does not compute it; NULL: it does */
    int n_node;                 /* nodes computed together */
    adj_node *node;       /* the last of them in the user's graph; NULL if it has no such node */
    double flop;          /* nominal multiplications and additions */
    size_t bytes;         /* read and written, scratch left out */
    double seconds;       /* of the last run; 0 unless profiled, or when it was not needed */
    double tuned_seconds; /* by which tune chose it, reorders included; 0: it did not */
    adj_dtype dtype;      /* what it computes in: of its last node, which may differ from node's */
} adj_step_info;
ADJ_API int adj_exec_step_count(const adj_exec *e);
ADJ_API adj_step_info adj_exec_step_at(const adj_exec *e, int i);

#ifdef __cplusplus
}
#endif
#endif
