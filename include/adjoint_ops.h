/* adjoint_ops.h - the builders: leaves, and the ops that networks are made of, with the gradients
 * of convolutions; adjoint_ops_grad.h has the other gradients. Part of adjoint.h, which says what
 * all builders have in common.
 *
 * A shape or element type that does not fit is ADJ_ESHAPE or ADJ_EDTYPE, another argument that is
 * never right ADJ_EARG; the result is then NULL and the graph keeps the sentence. Attribute structs
 * are copied; all zero is their default unless a field says otherwise. */
#ifndef ADJOINT_OPS_H
#define ADJOINT_OPS_H

#include "adjoint.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- leaves ---- */

/* How a parameter is filled at first. */
typedef enum {
    ADJ_INIT_CONSTANT,
    ADJ_INIT_UNIFORM,
    ADJ_INIT_NORMAL,
    ADJ_INIT_HALVES
} adj_init_kind;
/* CONSTANT: a. UNIFORM: [a, b). NORMAL: mean a, standard deviation b. HALVES: the first half of the
 * elements is a, the rest b. Drawn from the executor's seed and the name. */
typedef struct {
    adj_init_kind kind; /* which of the four */
    double a, b;        /* as said above */
} adj_init;

/* Leaves' names are unique within a graph, and not empty; a label that is in use is taken. */
/* A value that the caller sets before each run (adj_set), or once. */
ADJ_API adj_node *adj_input(adj_graph *g, const char *name, adj_dtype dtype, adj_shape shape);
/* A scalar input that has the value until the caller sets another. */
ADJ_API adj_node *adj_scalar_input(adj_graph *g, const char *name, adj_dtype dtype, double value);
/* A trainable parameter: kept between runs, first drawn as init says, assigned by updates. */
ADJ_API adj_node *adj_param(adj_graph *g, const char *name, adj_dtype dtype, adj_shape shape,
                            adj_init init);
/* A parameter that is not trained: running statistics, optimizer state, counters. */
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
    /* In data_format order: in pixels; in pixels between the filter's elements; zeros {before,
     * after}. */
    int64_t stride[4], dilation[4], pad[4][2];
    adj_padding padding; /* ADJ_VALID, unless it is set */
    adj_format format;   /* of x and the result */
} adj_conv;

/* y[n,oh,ow,o] = sum over kh,kw,c of x[n, oh*sh + kh*dh - ph, ow*sw + kw*dw - pw, c] *
 * w[kh,kw,c,o]. A filter whose in divides x's channels is a grouped convolution. NULL attributes:
 * all default (VALID, NHWC). */
ADJ_API adj_node *adj_conv2d(adj_node *x, adj_node *w, const adj_conv *a);
/* input_sizes: the shape of x, or only its height and width. */
ADJ_API adj_node *adj_conv2d_backprop_input(adj_shape input_sizes, adj_node *w, adj_node *dy,
                                            const adj_conv *a);
/* The gradient with respect to w, of shape filter_sizes: the sum over n,oh,ow of x dy. */
ADJ_API adj_node *adj_conv2d_backprop_filter(adj_node *x, adj_shape filter_sizes, adj_node *dy,
                                             const adj_conv *a);
/* y[.., c*multiplier + m] = sum over kh,kw of x[.., c] * w[kh,kw,c,m]. */
ADJ_API adj_node *adj_depthwise_conv2d_native(adj_node *x, adj_node *w, const adj_conv *a);
/* The gradient with respect to x: shaped as x. input_sizes as in conv2d_backprop_input. */
ADJ_API adj_node *adj_depthwise_conv2d_native_backprop_input(adj_shape input_sizes, adj_node *w,
                                                             adj_node *dy, const adj_conv *a);
/* The gradient with respect to w, of shape filter_sizes [kh, kw, in, multiplier]. */
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
 * EXPLICIT is for max_pool only, and so is a window over channels: 1x1 in space, its own stride. */
typedef struct {
    /* The window and its step, in pixels; zeros, which never count, {before, after}. */
    int64_t ksize[4], stride[4], pad[4][2];
    adj_padding padding; /* ADJ_VALID, unless it is set */
    adj_format format;   /* of x and the result */
} adj_pool;

/* The largest element of each window; NaN is larger than any number. */
ADJ_API adj_node *adj_max_pool(adj_node *x, const adj_pool *a);
/* The mean over a window's valid elements. */
ADJ_API adj_node *adj_avg_pool(adj_node *x, const adj_pool *a);
/* [n,h,w,c] or [n,c,h,w] -> [n,c]. */
ADJ_API adj_node *adj_global_avg_pool(adj_node *x, adj_format format);

/* The same attributes from lists with lengths and from words ("SAME", "NHWC"): for command lines,
 * files and tests. A NULL list with length 0 is absent. Every rule on the attributes alone is
 * checked here; those that need shapes, by the builders. */
typedef struct {
    int n_ksize, n_strides, n_dilations, n_explicit_paddings; /* the lists' lengths */
    const int64_t *ksize, *strides, *dilations; /* as adj_conv's and adj_pool's, 4 numbers each */
    const int64_t *explicit_paddings;           /* flat, 8 numbers */
    const char *padding, *data_format;          /* "SAME" and its like; NULL data_format: "NHWC" */
} adj_attr_lists;
/* A convolution's attributes. ADJ_EARG for what is never right; *a is then not to be used. */
ADJ_API adj_status adj_conv_from_attrs(const adj_attr_lists *lists, adj_conv *a, adj_error *error);
/* A pool's attributes, in the same way. */
ADJ_API adj_status adj_pool_from_attrs(const adj_attr_lists *lists, adj_pool *a, adj_error *error);
/* What one of the six convolutions, or a pool or a gradient of one, was built with, defaults filled
 * in. 0 and *a as it was: n is no such node. */
ADJ_API int adj_node_conv(const adj_node *n, adj_conv *a);
/* The same of a pool. */
ADJ_API int adj_node_pool(const adj_node *n, adj_pool *a);
/* More than ADJ_MAX_RANK entries: ADJ_ESHAPE. Entries are not checked here. */
ADJ_API adj_status adj_shape_from_list(int n, const int64_t *list, adj_shape *shape);

/* ---- resizing ---- */

/* Where in an input of size `in` output o of `out` reads:
 *   HALF_PIXEL     (o + 1/2) in / out - 1/2, not below 0
 *   ALIGN_CORNERS  o (in - 1) / (out - 1); 0 if out is 1
 *   ASYMMETRIC     o in / out
 * NEAREST takes the nearest element, of two the later one; ASYMMETRIC the one before. BILINEAR
 * weights the two neighbors along each axis; one of weight 0 is not read. ONNX's Resize has these
 * names (nearest_mode round_prefer_ceil; floor for ASYMMETRIC). PyTorch's interpolate: bilinear
 * with align_corners false is HALF_PIXEL, nearest-exact too; nearest is ASYMMETRIC. */
/* How an element between others is made. */
typedef enum { ADJ_NEAREST, ADJ_BILINEAR } adj_resize_mode;
/* Where a result's element reads, as said above. */
typedef enum { ADJ_HALF_PIXEL, ADJ_ALIGN_CORNERS, ADJ_ASYMMETRIC } adj_coordinates;
/* How adj_resize reads. */
typedef struct {
    adj_resize_mode mode;        /* ADJ_NEAREST, unless it is set */
    adj_coordinates coordinates; /* ADJ_HALF_PIXEL, unless it is set */
    adj_format format;           /* of x and the result */
} adj_sampling;

/* x is 4-D; height and width are the result's, 1 to INT32_MAX, as x's must be. NULL attributes: all
 * default (NEAREST, HALF_PIXEL, NHWC). Other shapes: ADJ_ESHAPE; other attributes: ADJ_EARG. */
ADJ_API adj_node *adj_resize(adj_node *x, int64_t height, int64_t width, const adj_sampling *a);

/* ---- bias and activations ---- */

/* x has rank 2 to 5; b [c] is added along the last axis (ADJ_NHWC) or axis 1 (ADJ_NCHW). */
ADJ_API adj_node *adj_bias_add(adj_node *x, adj_node *b, adj_format format);

/* max(x, 0). Activations are shaped as x, of any shape and float type; a NaN stays one. */
ADJ_API adj_node *adj_relu(adj_node *x);
/* min(max(x, 0), 6). */
ADJ_API adj_node *adj_relu6(adj_node *x);
/* x where x > 0, else alpha x. alpha not finite: ADJ_EARG. */
ADJ_API adj_node *adj_leaky_relu(adj_node *x, double alpha);
/* 1 / (1 + exp(-x)). */
ADJ_API adj_node *adj_sigmoid(adj_node *x);
/* The hyperbolic tangent. */
ADJ_API adj_node *adj_tanh(adj_node *x);
/* x sigmoid(x), also called swish. */
ADJ_API adj_node *adj_silu(adj_node *x);
ADJ_API adj_node *adj_hard_sigmoid(adj_node *x); /* min(max(x + 3, 0), 6) / 6 */
ADJ_API adj_node *adj_hard_swish(adj_node *x);   /* x hard_sigmoid(x) */
/* min(max(x, min), max), as ONNX's Clip and PyTorch's clamp: max everywhere if min is larger. The
 * bounds are numbers or infinite; a NaN is ADJ_EARG. x is compared with them as they are. */
ADJ_API adj_node *adj_clip(adj_node *x, double min, double max);
/* x where x > 0, else alpha (exp(x) - 1), as ONNX's and PyTorch's. alpha not finite: ADJ_EARG. */
ADJ_API adj_node *adj_elu(adj_node *x, double alpha);
/* log(1 + exp(x)), without overflow. Its gradient is dy sigmoid(x). */
ADJ_API adj_node *adj_softplus(adj_node *x);
/* x P(x), P being the normal distribution's cumulative function, (1 + erf(x / sqrt(2))) / 2. TANH
 * is its approximation x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2. As ONNX's and PyTorch's
 * (approximate "none" and "tanh"). Another form: ADJ_EARG. */
typedef enum { ADJ_GELU_ERF, ADJ_GELU_TANH } adj_gelu_form;
/* x P(x), in one of the two forms. */
ADJ_API adj_node *adj_gelu(adj_node *x, adj_gelu_form form);
/* x where x > 0, else slope x. x has rank 2 to 5; slope is [c], one for each channel, where
 * adj_bias_add has it, or [1]; else ADJ_ESHAPE. As PyTorch's, and ONNX's with such a slope. */
ADJ_API adj_node *adj_prelu(adj_node *x, adj_node *slope, adj_format format);

/* ---- elementwise, with broadcasting as in NumPy; operands have one dtype ---- */

/* a + b. Shapes that cannot be broadcast to each other: ADJ_ESHAPE; so for all that follow. */
ADJ_API adj_node *adj_add(adj_node *a, adj_node *b);
/* a - b. */
ADJ_API adj_node *adj_sub(adj_node *a, adj_node *b);
/* a b. */
ADJ_API adj_node *adj_mul(adj_node *a, adj_node *b);
/* a / b, as IEEE 754 has it: x / 0 is infinite, 0 / 0 NaN. */
ADJ_API adj_node *adj_div(adj_node *a, adj_node *b);
/* The larger of both; NaN if one is. */
ADJ_API adj_node *adj_maximum(adj_node *a, adj_node *b); /* the gradient of a tie goes to a */
/* The smaller of both; NaN if one is. The gradient of a tie goes to a. */
ADJ_API adj_node *adj_minimum(adj_node *a, adj_node *b);
ADJ_API adj_node *adj_equal(adj_node *a, adj_node *b); /* 1 or 0; no gradient flows */
/* 1 where a >= b, else 0, in the operands' type; no gradient flows. */
ADJ_API adj_node *adj_greater_equal(adj_node *a, adj_node *b);
/* a^b, as C's pow. The gradient with respect to b is NaN for a negative a, and 0 where a is 0 and b
 * is not negative. */
ADJ_API adj_node *adj_pow(adj_node *a, adj_node *b);
/* |x|; its gradient is 0 at 0. Made of two relus. */
ADJ_API adj_node *adj_abs(adj_node *x);
/* -x. */
ADJ_API adj_node *adj_neg(adj_node *x);
/* factor x. factor not finite: ADJ_EARG. */
ADJ_API adj_node *adj_scale(adj_node *x, double factor);
/* x^2. */
ADJ_API adj_node *adj_square(adj_node *x);
/* The square root; NaN below 0. */
ADJ_API adj_node *adj_sqrt(adj_node *x);
/* e^x. */
ADJ_API adj_node *adj_exp(adj_node *x);
/* The natural logarithm; of 0 minus infinity, below 0 NaN. */
ADJ_API adj_node *adj_log(adj_node *x);
/* a if cond is not 0 (a NaN is not), else b, whole: what is not chosen may hold NaNs. cond: a
 * scalar of any float type; a and b have one type, i32 too. No gradient flows to cond. */
ADJ_API adj_node *adj_select(adj_node *cond, adj_node *a, adj_node *b);
/* Rounds to nearest even; to i32 truncates. */
ADJ_API adj_node *adj_cast(adj_node *x, adj_dtype dtype);
/* x itself; adj_grad sees a constant. */
ADJ_API adj_node *adj_stop_gradient(adj_node *x);

/* ---- matrices and shapes ---- */

/* Flags of adj_matmul. */
enum { ADJ_TRANSPOSE_A = 1, ADJ_TRANSPOSE_B = 2 };
/* a b, for matrices; those of the flags transposed first. */
ADJ_API adj_node *adj_matmul(adj_node *a, adj_node *b, unsigned transposed);
/* One entry of shape may be -1: whatever is left. */
ADJ_API adj_node *adj_reshape(adj_node *x, adj_shape shape);
/* Result axis i is x's axis perm[i]; n is x's rank. */
ADJ_API adj_node *adj_transpose(adj_node *x, int n, const int perm[]);
/* The n values one behind the other along axis (negative: from the end); their other sizes and
 * types are equal (else ADJ_ESHAPE, ADJ_EDTYPE). */
ADJ_API adj_node *adj_concat(int n, adj_node *const x[], int axis);
/* Zeros around x; both lists have x's rank. */
ADJ_API adj_node *adj_pad(adj_node *x, adj_shape before, adj_shape after);
/* The elements begin .. begin + size - 1 along each axis; both lists have x's rank. */
ADJ_API adj_node *adj_slice(adj_node *x, adj_shape begin, adj_shape size);
/* x repeated to the shape, by NumPy's rule: axes of size 1, and those that x has not. */
ADJ_API adj_node *adj_broadcast_to(adj_node *x, adj_shape shape);

/* In adj_axes.n: every axis. */
enum { ADJ_ALL = -1 };
/* Axes to reduce over: n of them, or ADJ_ALL. Negative axes count from the end. */
typedef struct {
    int n, axis[ADJ_MAX_RANK]; /* how many, and which */
    int keep_dims;             /* 1: a reduced axis stays, with size 1 */
} adj_axes;
/* The sum over the axes. An axis that is not there, or is given twice: ADJ_EARG. */
ADJ_API adj_node *adj_reduce_sum(adj_node *x, adj_axes axes);
/* The sum divided by the number of elements summed. */
ADJ_API adj_node *adj_reduce_mean(adj_node *x, adj_axes axes);
/* The largest element. Ties share the gradient equally; an empty axis is ADJ_ESHAPE. */
ADJ_API adj_node *adj_reduce_max(adj_node *x, adj_axes axes);
/* The smallest element: -reduce_max(-x). */
ADJ_API adj_node *adj_reduce_min(adj_node *x, adj_axes axes);
/* The index of the largest element along the axis (negative: from the end), which the result lacks:
 * i32. Of equal elements the first one; a NaN is larger than any number. No gradient flows. An
 * empty axis: ADJ_ESHAPE. */
ADJ_API adj_node *adj_argmax(adj_node *x, int axis);

/* ---- normalization, loss, dropout ---- */

/* x has rank 2 to 5, the channel axis as in adj_bias_add; gamma and beta are [c]. Statistics,
 * gamma, beta and sums are f32 for half x, else of x's type. */
/* [2, c]: mean and biased variance over the other axes. Exact sums in a fixed order. */
ADJ_API adj_node *adj_batch_norm_stats(adj_node *x, adj_format format);
/* (x - mean) / sqrt(variance + epsilon) * gamma + beta; stats from adj_batch_norm_stats(x) or
 * running ones. */
ADJ_API adj_node *adj_batch_norm(adj_node *x, adj_node *stats, adj_node *gamma, adj_node *beta,
                                 double epsilon, adj_format format);

/* The same with mean and biased variance of each group of channels of each image by itself, as
 * PyTorch's GroupNorm; groups divides the channels. x's rank and types are batch norm's. */
ADJ_API adj_node *adj_group_norm(adj_node *x, adj_node *gamma, adj_node *beta, int64_t groups,
                                 double epsilon, adj_format format);
/* Over x's last axes, as many as gamma and beta have, which are of that shape: PyTorch's LayerNorm.
 * With gamma [c] each pixel of an NHWC image is normalized over its channels, as in ConvNeXt. Made
 * of group norm with one group, as is its gradient. */
ADJ_API adj_node *adj_layer_norm(adj_node *x, adj_node *gamma, adj_node *beta, double epsilon);

/* Over the last axis. */
ADJ_API adj_node *adj_softmax(adj_node *x);
/* x - log(sum of exp(x)) over the last axis, without overflow. */
ADJ_API adj_node *adj_log_softmax(adj_node *x);
/* logits and labels [n, k] -> loss [n]. smoothing s: labels become (1-s)*labels + s/k. */
ADJ_API adj_node *adj_softmax_cross_entropy(adj_node *logits, adj_node *labels, double smoothing);
/* labels: i32 [n], each 0 to k-1, or -1: that row's loss and gradient are 0. Others fail adj_run
 * with ADJ_EARG. Loss [n], gradient [n, k]. */
ADJ_API adj_node *adj_sparse_softmax_cross_entropy(adj_node *logits, adj_node *labels,
                                                   double smoothing);

/* Zeroes each element with probability rate and scales the others by 1/(1-rate). step: i32 scalar;
 * the same (step, seed) gives the same mask on every backend and for any number of threads
 * (Philox4x32-10). */
ADJ_API adj_node *adj_dropout(adj_node *x, adj_node *step, double rate, uint64_t seed);

/* ---- between processes ---- */

/* What a group of processes makes of the values that each of them has. */
typedef enum { ADJ_REDUCE_SUM } adj_reduction;
/* Element by element, of the x of every process of the group; each gets it. Its gradient is the
 * same of dy. All processes run the same graph. The group is that of the backend that computes it
 * (adjoint_mpi.h); the built-in ones know of no other process, and give x. */
ADJ_API adj_node *adj_all_reduce(adj_node *x, adj_reduction reduction);

#ifdef __cplusplus
}
#endif
#endif
