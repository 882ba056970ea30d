/* adjoint_ops.h - the builders: leaves, and the ops that networks are made of, with the gradients
 * of convolutions; adj_grad adds those of the other ops. Part of adjoint.h, which describes what
 * all builders have in common.
 *
 * Errors: ADJ_ESHAPE for an incompatible shape, ADJ_EDTYPE for an incompatible element type,
 * ADJ_EARG for any other invalid argument. The result is then NULL and the graph stores the
 * message. Attribute structs are copied; all zero is their default unless a field says otherwise.
 */
#ifndef ADJOINT_OPS_H
#define ADJOINT_OPS_H

#include "adjoint.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- leaves ---- */

/* Distribution of the initial values of a parameter. */
typedef enum { ADJ_INIT_CONSTANT, ADJ_INIT_UNIFORM, ADJ_INIT_NORMAL, ADJ_INIT_DATA } adj_init_kind;
/* Initial values of a parameter. CONSTANT: a. UNIFORM: [a, b). NORMAL: mean a, standard deviation
 * b. Random values depend on the executor's seed and the parameter's name. DATA: the elements at
 * data, row-major, of the parameter's type, which the graph copies. */
typedef struct {
    adj_init_kind kind; /* the distribution */
    double a, b;        /* its parameters */
    const void *data;   /* DATA: the values; else NULL */
} adj_init;

/* The name of a leaf must not be empty, and no other leaf or label of the graph may have it. */
/* Adds an input: a value that the caller sets once or before each run (adj_set). */
ADJ_API adj_node *adj_input(adj_graph *g, const char *name, adj_dtype dtype, adj_shape shape);
/* Adds a scalar input that has this value until the caller sets another. */
ADJ_API adj_node *adj_scalar_input(adj_graph *g, const char *name, adj_dtype dtype, double value);
/* Adds a trainable parameter: initialized by init, kept between runs, assigned by updates. */
ADJ_API adj_node *adj_param(adj_graph *g, const char *name, adj_dtype dtype, adj_shape shape,
                            adj_init init);
/* Adds a state, which is a parameter that is not trained: running statistics, states of an
 * optimizer, counters. */
ADJ_API adj_node *adj_state(adj_graph *g, const char *name, adj_dtype dtype, adj_shape shape,
                            adj_init init);
/* Adds a constant. data has adj_shape_elems(shape) elements, row-major, and is copied. */
ADJ_API adj_node *adj_const(adj_graph *g, adj_dtype dtype, adj_shape shape, const void *data);
/* Adds a constant all of whose elements are value. */
ADJ_API adj_node *adj_fill(adj_graph *g, adj_dtype dtype, adj_shape shape, double value);

/* ---- convolutions (TensorFlow's contract) ---- */

/* Attributes of a convolution. As in TensorFlow, the entries of stride, dilation and pad follow the
 * axes of the data format. An all-zero array is the default (ones; no pads); a single zero in
 * stride or dilation is an error. pad must be given with ADJ_EXPLICIT and only then. In both
 * formats filters are [kh, kw, in, out], depthwise filters [kh, kw, in, multiplier]. */
typedef struct {
    /* Step of the window in pixels; distance of the filter's elements in pixels; zeros {before,
     * after}. */
    int64_t stride[4], dilation[4], pad[4][2];
    adj_padding padding; /* default: ADJ_VALID */
    adj_format format;   /* format of x and the result */
} adj_conv;

/* y[n,oh,ow,o] = sum over kh,kw,c of x[n, oh*sh + kh*dh - ph, ow*sw + kw*dw - pw, c] *
 * w[kh,kw,c,o]. The convolution is grouped if w has fewer input channels than x; they must divide
 * those of x. a NULL: all default (VALID, NHWC). */
ADJ_API adj_node *adj_conv2d(adj_node *x, adj_node *w, const adj_conv *a);
/* The gradient of conv2d with respect to x. input_sizes: the shape of x, or its height and width.
 */
ADJ_API adj_node *adj_conv2d_backprop_input(adj_shape input_sizes, adj_node *w, adj_node *dy,
                                            const adj_conv *a);
/* The gradient of conv2d with respect to w, of shape filter_sizes: sums of x dy over n,oh,ow. */
ADJ_API adj_node *adj_conv2d_backprop_filter(adj_node *x, adj_shape filter_sizes, adj_node *dy,
                                             const adj_conv *a);
/* Depthwise convolution: y[.., c*multiplier + m] = sum over kh,kw of x[.., c] * w[kh,kw,c,m]. */
ADJ_API adj_node *adj_depthwise_conv2d_native(adj_node *x, adj_node *w, const adj_conv *a);
/* The gradient of the depthwise convolution with respect to x. input_sizes as in
 * adj_conv2d_backprop_input. */
ADJ_API adj_node *adj_depthwise_conv2d_native_backprop_input(adj_shape input_sizes, adj_node *w,
                                                             adj_node *dy, const adj_conv *a);
/* The gradient of the depthwise convolution with respect to w, of shape filter_sizes [kh, kw, in,
 * multiplier]. */
ADJ_API adj_node *adj_depthwise_conv2d_native_backprop_filter(adj_node *x, adj_shape filter_sizes,
                                                              adj_node *dy, const adj_conv *a);
/* Transposed convolution: the gradient of a convolution with respect to its input, which has the
 * shape output_shape (four entries). w is [kh, kw, out, in]. */
ADJ_API adj_node *adj_conv2d_transpose(adj_node *x, adj_node *w, adj_shape output_shape,
                                       const adj_conv *a);
/* A depthwise convolution with the attributes a, then a 1x1 convolution. depthwise: [kh, kw, in,
 * multiplier]; pointwise: [1, 1, in*multiplier, out]. */
ADJ_API adj_node *adj_separable_conv2d(adj_node *x, adj_node *depthwise, adj_node *pointwise,
                                       const adj_conv *a);

/* ---- pooling ---- */

/* Attributes of a pool. The entries of ksize, stride and pad follow the axes of the data format.
 * ksize is required; an all-zero stride means ksize. Only max_pool accepts EXPLICIT padding, and
 * windows over channels, which must be 1x1 in space with a stride of their own size. */
typedef struct {
    /* Size of the window and its step, in pixels; padding {before, after}, whose elements are
     * ignored. */
    int64_t ksize[4], stride[4], pad[4][2];
    adj_padding padding; /* default: ADJ_VALID */
    adj_format format;   /* format of x and the result */
} adj_pool;

/* The maximum of each window; a NaN in the window gives NaN. */
ADJ_API adj_node *adj_max_pool(adj_node *x, const adj_pool *a);
/* The mean of the elements of each window that lie inside the image. */
ADJ_API adj_node *adj_avg_pool(adj_node *x, const adj_pool *a);
/* The mean over height and width: [n,h,w,c] or [n,c,h,w] -> [n,c]. */
ADJ_API adj_node *adj_global_avg_pool(adj_node *x, adj_format format);

/* ---- resizing ---- */

/* Coordinate in an input of size `in` that output o of `out` reads along an axis:
 *   HALF_PIXEL     (o + 1/2) in / out - 1/2, not below 0
 *   ALIGN_CORNERS  o (in - 1) / (out - 1); 0 if out is 1
 *   ASYMMETRIC     o in / out
 * NEAREST reads the nearest element, the later one of two at equal distance; with ASYMMETRIC it
 * reads the element at or before the coordinate. BILINEAR interpolates between the two elements
 * around it along each axis; an element of weight 0 is not read. The names are those of ONNX's
 * Resize (nearest_mode round_prefer_ceil; floor for ASYMMETRIC). PyTorch's interpolate: bilinear
 * with align_corners false and nearest-exact are HALF_PIXEL; nearest is ASYMMETRIC. */
/* Interpolation of a resize. */
typedef enum { ADJ_NEAREST, ADJ_BILINEAR } adj_resize_mode;
/* Mapping of output to input coordinates, as listed above. */
typedef enum { ADJ_HALF_PIXEL, ADJ_ALIGN_CORNERS, ADJ_ASYMMETRIC } adj_coordinates;
/* Attributes of adj_resize. */
typedef struct {
    adj_resize_mode mode;        /* default: ADJ_NEAREST */
    adj_coordinates coordinates; /* default: ADJ_HALF_PIXEL */
    adj_format format;           /* format of x and the result */
} adj_sampling;

/* Resizes images x of rank 4 to height and width. Sizes of x and of the result are 1 to INT32_MAX
 * (else ADJ_ESHAPE). a NULL: all default (NEAREST, HALF_PIXEL, NHWC). ADJ_EARG for invalid
 * attributes. */
ADJ_API adj_node *adj_resize(adj_node *x, int64_t height, int64_t width, const adj_sampling *a);

/* ---- bias and activations ---- */

/* x + b with one element of b [c] for each channel: along the last axis (ADJ_NHWC) or axis 1
 * (ADJ_NCHW) of x, which has rank 2 to 5. */
ADJ_API adj_node *adj_bias_add(adj_node *x, adj_node *b, adj_format format);

/* max(x, 0). Activations take any shape and float type, return the same, and propagate NaN. */
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
/* min(max(x, min), max), like ONNX's Clip and PyTorch's clamp: max everywhere if min > max. Bounds
 * may be infinite; a NaN is ADJ_EARG. x is compared with the unrounded bounds. */
ADJ_API adj_node *adj_clip(adj_node *x, double min, double max);
/* x where x > 0, else alpha (exp(x) - 1), like ONNX's and PyTorch's Elu. alpha not finite:
 * ADJ_EARG. */
ADJ_API adj_node *adj_elu(adj_node *x, double alpha);
/* log(1 + exp(x)), without overflow. Its gradient is dy sigmoid(x). */
ADJ_API adj_node *adj_softplus(adj_node *x);
/* The error function: 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x. */
ADJ_API adj_node *adj_erf(adj_node *x);
/* Form of adj_gelu. ERF: x P(x) with the cumulative normal distribution P(x) = (1 + erf(x /
 * sqrt(2))) / 2. TANH: the approximation x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2. ONNX
 * and PyTorch call them approximate "none" and "tanh". */
typedef enum { ADJ_GELU_ERF, ADJ_GELU_TANH } adj_gelu_form;
/* x P(x) in one of the two forms. ADJ_EARG for another form. */
ADJ_API adj_node *adj_gelu(adj_node *x, adj_gelu_form form);
/* x where x > 0, else slope x. x has rank 2 to 5; slope is [1], or [c] with one element for each
 * channel, whose axis is that of adj_bias_add; else ADJ_ESHAPE. Like PyTorch's PReLU, and ONNX's
 * with such a slope. */
ADJ_API adj_node *adj_prelu(adj_node *x, adj_node *slope, adj_format format);

/* ---- elementwise, with broadcasting as in NumPy; operands have one dtype ---- */

/* a + b. ADJ_ESHAPE for shapes that cannot be broadcast to each other, in this and the next
 * builders. */
ADJ_API adj_node *adj_add(adj_node *a, adj_node *b);
/* a - b. */
ADJ_API adj_node *adj_sub(adj_node *a, adj_node *b);
/* a b. */
ADJ_API adj_node *adj_mul(adj_node *a, adj_node *b);
/* a / b by IEEE 754: x / 0 is infinite, 0 / 0 NaN. */
ADJ_API adj_node *adj_div(adj_node *a, adj_node *b);
/* The larger of both; NaN if either is NaN. For a = b the whole gradient goes to a. */
ADJ_API adj_node *adj_maximum(adj_node *a, adj_node *b);
/* The smaller of both; NaN if either is NaN. For a = b the whole gradient goes to a. */
ADJ_API adj_node *adj_minimum(adj_node *a, adj_node *b);
/* 1 where a = b, else 0, in the operands' type; no gradient flows. */
ADJ_API adj_node *adj_equal(adj_node *a, adj_node *b);
/* 1 where a >= b, else 0, in the operands' type; no gradient flows. */
ADJ_API adj_node *adj_greater_equal(adj_node *a, adj_node *b);
/* a^b, as C's pow. The gradient with respect to b is NaN for a negative a, and 0 where a is 0 and b
 * is not negative. */
ADJ_API adj_node *adj_pow(adj_node *a, adj_node *b);
/* |x|, computed as relu(x) + relu(-x); its gradient is 0 at 0. */
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
/* The natural logarithm: minus infinity at 0, NaN below 0. */
ADJ_API adj_node *adj_log(adj_node *x);
/* All of a if cond is not 0 (NaN counts as not 0), else all of b; NaNs of the operand that is not
 * selected have no effect. cond is a scalar of any float type; a and b have one type, which may be
 * i32. No gradient flows to cond. */
ADJ_API adj_node *adj_select(adj_node *cond, adj_node *a, adj_node *b);
/* Converts x to another element type: rounds to nearest even; to i32 it truncates. */
ADJ_API adj_node *adj_cast(adj_node *x, adj_dtype dtype);
/* x, as a constant for adj_grad: no gradient flows to x. */
ADJ_API adj_node *adj_stop_gradient(adj_node *x);

/* ---- matrices and shapes ---- */

/* Flags of adj_matmul. */
enum { ADJ_TRANSPOSE_A = 1, ADJ_TRANSPOSE_B = 2 };
/* The matrix product a b; the flags say which operands are transposed first. */
ADJ_API adj_node *adj_matmul(adj_node *a, adj_node *b, unsigned transposed);
/* The elements of x in the same order with another shape. One entry of shape may be -1: it follows
 * from the number of elements. */
ADJ_API adj_node *adj_reshape(adj_node *x, adj_shape shape);
/* Permutes the axes: axis i of the result is axis perm[i] of x. n is the rank of x. */
ADJ_API adj_node *adj_transpose(adj_node *x, int n, const int perm[]);
/* Concatenates n values along axis (negative: from the end). All other sizes and the types must be
 * equal (else ADJ_ESHAPE, ADJ_EDTYPE). */
ADJ_API adj_node *adj_concat(int n, adj_node *const x[], int axis);
/* x with before[i] zeros before and after[i] zeros after it along axis i; both lists have x's rank.
 */
ADJ_API adj_node *adj_pad(adj_node *x, adj_shape before, adj_shape after);
/* The elements begin[i] .. begin[i] + size[i] - 1 along each axis i; both lists have x's rank. */
ADJ_API adj_node *adj_slice(adj_node *x, adj_shape begin, adj_shape size);
/* x broadcast to the shape by NumPy's rule: axes of size 1 and missing leading axes are repeated.
 */
ADJ_API adj_node *adj_broadcast_to(adj_node *x, adj_shape shape);

/* Value of adj_axes.n for all axes. */
enum { ADJ_ALL = -1 };
/* Axes to reduce over: n of them, or ADJ_ALL. Negative axes count from the end. */
typedef struct {
    int n, axis[ADJ_MAX_RANK]; /* number of axes, or ADJ_ALL; the axes */
    int keep_dims;             /* 1: a reduced axis stays, with size 1 */
} adj_axes;
/* The sum over the axes. ADJ_EARG for an axis that x does not have or that is given twice. */
ADJ_API adj_node *adj_reduce_sum(adj_node *x, adj_axes axes);
/* The sum divided by the number of elements summed. */
ADJ_API adj_node *adj_reduce_mean(adj_node *x, adj_axes axes);
/* The largest element over the axes. Equal maxima share the gradient equally. ADJ_ESHAPE for an
 * empty axis. */
ADJ_API adj_node *adj_reduce_max(adj_node *x, adj_axes axes);
/* The smallest element over the axes, computed as -reduce_max(-x). */
ADJ_API adj_node *adj_reduce_min(adj_node *x, adj_axes axes);
/* The index (i32) of the largest element along the axis (negative: from the end), which is removed
 * from the shape. The first of equal elements counts; NaN counts as larger than any number. No
 * gradient flows. ADJ_ESHAPE for an empty axis. */
ADJ_API adj_node *adj_argmax(adj_node *x, int axis);

/* ---- normalization, loss, dropout ---- */

/* Normalization: x has rank 2 to 5, with the channel axis of adj_bias_add; gamma and beta are [c].
 * Statistics, gamma, beta and sums are f32 for x of f16 or bf16, else of x's type. */
/* Mean and biased variance of each channel, [2, c]. The order of each sum does not depend on the
 * number of threads. */
ADJ_API adj_node *adj_batch_norm_stats(adj_node *x, adj_format format);
/* (x - mean) / sqrt(variance + epsilon) * gamma + beta; stats from adj_batch_norm_stats(x) or
 * running ones. */
ADJ_API adj_node *adj_batch_norm(adj_node *x, adj_node *stats, adj_node *gamma, adj_node *beta,
                                 double epsilon, adj_format format);

/* Normalizes like adj_batch_norm with mean and biased variance of each group of channels of each
 * image, like PyTorch's GroupNorm. groups must divide the channels. Ranks and types are those of
 * batch norm. */
ADJ_API adj_node *adj_group_norm(adj_node *x, adj_node *gamma, adj_node *beta, int64_t groups,
                                 double epsilon, adj_format format);
/* Normalizes over the last axes of x, whose sizes are the shape of gamma and beta, like PyTorch's
 * LayerNorm. With gamma [c] each pixel of an NHWC image is normalized over its channels, as in
 * ConvNeXt. Computed by group norm with one group. */
ADJ_API adj_node *adj_layer_norm(adj_node *x, adj_node *gamma, adj_node *beta, double epsilon);

/* exp(x) / sum of exp(x) over the last axis, without overflow. */
ADJ_API adj_node *adj_softmax(adj_node *x);
/* x - log(sum of exp(x)) over the last axis, without overflow. */
ADJ_API adj_node *adj_log_softmax(adj_node *x);
/* The cross-entropy of softmax(logits) with label distributions: logits and labels [n, k] -> loss
 * [n]. With smoothing s labels become (1-s)*labels + s/k. */
ADJ_API adj_node *adj_softmax_cross_entropy(adj_node *logits, adj_node *labels, double smoothing);
/* The cross-entropy of softmax(logits [n, k]) with class numbers: labels i32 [n] from 0 to k-1, or
 * -1 for a row whose loss and gradient are 0 -> loss [n]. Other labels make adj_run fail with
 * ADJ_EARG. */
ADJ_API adj_node *adj_sparse_softmax_cross_entropy(adj_node *logits, adj_node *labels,
                                                   double smoothing);

/* Zeroes each element with probability rate and scales the others by 1/(1-rate). The mask follows
 * from the i32 scalar step and from seed alone, on every backend and for any number of threads
 * (Philox4x32-10). */
ADJ_API adj_node *adj_dropout(adj_node *x, adj_node *step, double rate, uint64_t seed);

/* ---- between processes ---- */

/* Reduction of the values of a group of processes. */
typedef enum { ADJ_REDUCE_SUM } adj_reduction;
/* Reduces x over all processes of a group, element by element; every process gets the result. Its
 * gradient is the all_reduce of dy. All processes must run the same graph. The backend that
 * computes the node determines the group (adjoint_mpi.h); with the built-in backends the process is
 * alone and the result is x. */
ADJ_API adj_node *adj_all_reduce(adj_node *x, adj_reduction reduction);

#ifdef __cplusplus
}
#endif
#endif
