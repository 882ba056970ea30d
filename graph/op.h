/* op.h - the part of the op interface that only this tree uses: roles and layers of a graph, copies
 * of nodes, properties of element types, random numbers, the attributes and the list of the
 * built-in ops. Exported for tests and libadjoint_io. */
#ifndef ADJ_OP_H
#define ADJ_OP_H

#include "adjoint_ext.h"

/* ---- a graph under construction ---- */

/* Sets the role of the nodes that are added from now on and returns the previous role, so that the
 * caller can restore it. adj_grad sets GRADIENT for its own nodes. Existing nodes do not change.
 * Another value of role sets the graph's error to ADJ_EARG. */
ADJ_API adj_role adj_graph_set_role(adj_graph *g, adj_role role);
/* Sets the name of the layer under construction, such as "conv3", as the prefix of the graph's
 * errors: "conv3: conv2d: ...". NULL or "": no prefix. Returns the previous name, so that the
 * caller can restore it. The string is not copied. */
ADJ_API const char *adj_graph_set_layer(adj_graph *g, const char *name);

/* ---- updates ---- */

/* Returns the number of assignments; 0 for NULL. */
ADJ_API int adj_updates_count(const adj_updates *u);
/* Returns the leaf that the i-th assignment sets; NULL when out of range. */
ADJ_API adj_node *adj_updates_leaf_at(const adj_updates *u, int i);
/* Returns the value that the i-th assignment stores; NULL when out of range. */
ADJ_API adj_node *adj_updates_next_at(const adj_updates *u, int i);
/* True if one of the assignments sets the leaf; false for NULL. */
ADJ_API int adj_updates_assign(const adj_updates *u, const adj_node *leaf);
/* The nodes that compute next values, by id, allocated from the graph. */
typedef struct {
    char *of_batch;  /* depends on an input that is not a scalar */
    char *is_copied; /* computed from gradients, and needed by a next value: part of the update */
    char *is_read;   /* another node that a next value or a copied node reads */
} adj_update_nodes;
/* Sorts the graph's nodes by what u needs of them. Returns the graph's status. */
ADJ_API adj_status adj_find_update_nodes(const adj_updates *u, adj_update_nodes *to);
/* Adds {leaf := next} to the assignments of the graph's layers, such as running statistics and step
 * counters. */
ADJ_API void adj_layer_update_add(adj_node *leaf, adj_node *next);

/* ---- nodes ---- */

/* Allocates zeroed memory that lives as long as the graph; when out of memory it sets the graph's
 * error and returns NULL. */
ADJ_API void *adj_graph_alloc(adj_graph *g, size_t bytes);
/* Returns a copy of n over other operands for recomputation: it is never merged with an equal node,
 * except with copies of the same number. copy is 2 or more (1 is used by adj_exec_opts.recompute).
 */
ADJ_API adj_node *adj_node_clone(const adj_node *n, adj_node *const in[], int copy);
/* Returns a node of this op with n's first operand as its first operand and with n's attributes, or
 * NULL if there is none. Both ops must have the same type of attributes. */
ADJ_API const adj_node *adj_sibling(const adj_node *n, const adj_op *op, const adj_uses *uses);
/* Returns the shape with zeros past its rank, since attributes are compared byte for byte. */
static inline adj_shape adj_trimmed(adj_shape s)
{
    for (int64_t i = s.rank < 0 ? 0 : s.rank; i < ADJ_MAX_RANK; i++)
        s.dim[i] = 0;
    return s;
}
/* Prints the attributes, each after a space. */
ADJ_API void adj_show_attrs(const adj_node *n, FILE *f);
/* Returns the data format of the node; NHWC if its op has none. */
ADJ_API adj_format adj_format_of(const adj_node *n);
/* Returns the axes of operand k, a letter each, if it is a filter; else NULL. */
ADJ_API const char *adj_filter_axes(const adj_op *op, int k);
/* Converts attrs, a copy of n's attributes, to images of that format. Returns 0 if they have that
 * format already, or if n's operands are not images of rank 4. */
ADJ_API int adj_set_format(const adj_node *n, void *attrs, adj_format format);
/* Sets *to to the i-th value that adj_node_variant tries for an attribute of 8 bytes; returns 0
 * past the last. */
ADJ_API int adj_attr_value(const adj_attr *a, int i, int64_t *to);

/* ---- helpers for the functions of ops ---- */

/* Converts a list of axes of x to bits. For an invalid list it sets the graph's error; the message
 * names op. */
ADJ_API adj_status adj_axes_as_bits(const adj_node *x, const adj_op *op, const adj_axes *axes,
                                    int64_t *bits);
/* True if n is an adj_fill; *value is then its value. */
ADJ_API int adj_is_fill(const adj_node *n, double *value);
/* An adj_op.simplify for ops whose result consists of elements of their operand: for an unchanged
 * shape it returns the operand, for a fill another fill. */
ADJ_API adj_node *adj_simplify_selection(const adj_node *n, adj_node *const in[]);
/* Checks the integer labels of the group's first node, if it has any: each must be a class, or -1.
 * Else ADJ_EARG with a message in c->message. Kernels of softmax and its cross-entropies call it
 * before they write a result. The labels must be an operand of the group in plain layout. */
ADJ_API adj_status adj_call_check_labels(const adj_call *c);

/* ---- element types and random numbers ---- */

/* Sets *dtype to the type of that name. ADJ_EARG for an unknown name; *dtype is then unchanged. */
ADJ_API adj_status adj_dtype_from_name(const char *name, adj_dtype *dtype);
ADJ_API int adj_is_half(adj_dtype dtype); /* true for f16 and bf16 */

/* Properties of an element type. For types other than floats all but name and bytes are 0. */
typedef struct {
    const char *name; /* "f32" */
    size_t bytes;     /* bytes of one element */
    int significand;  /* bits of the significand, the hidden bit included */
    /* Exponents of normal numbers: the smallest is 2^min_exponent. */
    int min_exponent, max_exponent;
    double unit;  /* 2^-significand: the relative error bound of rounding to nearest */
    double floor; /* kernels may treat smaller magnitudes as 0 */
} adj_dtype_traits;
/* Returns the properties of a type, never NULL; for an invalid dtype bytes is 0. */
ADJ_API const adj_dtype_traits *adj_traits_of(adj_dtype dtype);

/* Converts n elements, each rounded once; equal types are copied bit by bit. */
ADJ_API void adj_convert(adj_dtype from, const void *v, adj_dtype to, void *converted, int64_t n);
/* Computes the four random words of Philox4x32-10 for (counter, key). */
ADJ_API void adj_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);
/* Fills n elements with random values; element i depends only on (seed, stream, i). */
ADJ_API void adj_draw(adj_dtype dtype, void *data, int64_t n, adj_init init, uint64_t seed,
                      uint64_t stream);

/* Maps n values linearly from [-1, 1) to [low, high). */
ADJ_API void adj_spread(int64_t n, double v[], double low, double high);

/* ---- attribute structs as stored in nodes, without padding ---- */

typedef struct { /* the six convolutions: attributes as given, and the geometry */
    adj_conv conv;
    adj_conv_geom geom;
} adj_conv_attrs;
/* The pools. max_pool_argmax(x) is the position of the maximum in each window as an i32: (i*kw +
 * j)*kc + c for row i, column j and channel c of the window, padding included.
 * max_pool_grad_argmax(argmax, dy) is max_pool_grad computed from that position. */
typedef struct {
    adj_pool pool;      /* as given */
    adj_conv_geom geom; /* resolved */
    int64_t kc;         /* size of a window over channels, which is also its stride; else 1 */
} adj_pool_attrs;
typedef struct { /* input, param, state */
    int64_t dtype;
    adj_shape shape;
    double a, b;
    const void *data;   /* ADJ_INIT_DATA: owned by the user's graph */
    int64_t data_dtype; /* type of data, which that of the leaf in a copy of the graph may not be */
    int64_t init;       /* adj_init_kind */
    int64_t is_drawn;   /* 0: an input without a value until it is set */
    uint64_t serial;    /* unique number that keeps equal leaves distinct */
} adj_leaf_attrs;
/* Fills n elements of a leaf that has these attributes with its initial values, in dtype, which may
 * be another type than that of given values. */
ADJ_API void adj_draw_leaf(const adj_leaf_attrs *a, adj_dtype dtype, void *to, int64_t n,
                           uint64_t seed, uint64_t stream);
typedef struct { /* const */
    int64_t dtype;
    adj_shape shape;
    const void *data; /* owned by the user's graph */
} adj_const_attrs;
typedef struct { /* fill */
    int64_t dtype;
    adj_shape shape;
    double value;
} adj_fill_attrs;
typedef struct { /* bias_add, bias_add_grad, batch_norm_stats, prelu, prelu_grad */
    int64_t format;
} adj_format_attrs;
typedef struct { /* scale: factor; leaky_relu, elu and their gradients: alpha; ema: beta;
                    cross-entropies: smoothing */
    double value;
} adj_value_attrs;
typedef struct { /* clip and its gradient */
    double min, max;
} adj_clip_attrs;
typedef struct { /* resize and its gradient: from ih x iw to oh x ow */
    int64_t format, mode, coordinates;
    int64_t ih, iw, oh, ow;
} adj_resize_attrs;
typedef struct {       /* all_reduce, all_reduce_start */
    int64_t reduction; /* adj_reduction */
} adj_reduction_attrs;
typedef struct {  /* gelu and its gradient */
    int64_t form; /* adj_gelu_form */
} adj_gelu_attrs;
typedef struct { /* prelu_grad_slope */
    int64_t format, slopes;
} adj_prelu_attrs;
typedef struct { /* cast, label_count */
    int64_t dtype;
} adj_dtype_attrs;
typedef struct { /* matmul */
    int64_t transpose_a, transpose_b;
} adj_matmul_attrs;
typedef struct { /* reshape, broadcast_to: the whole shape */
    adj_shape shape;
} adj_shape_attrs;
typedef struct { /* transpose; entries past the rank are 0 */
    int64_t perm[ADJ_MAX_RANK];
} adj_transpose_attrs;
typedef struct { /* concat; axis is not negative */
    int64_t axis;
} adj_axis_attrs;
typedef struct { /* pad: before, after; slice: begin, size */
    adj_shape a, b;
} adj_range_attrs;
typedef struct { /* reduce_sum, _mean, _max; bit i of axes: axis i is reduced */
    int64_t axes, keep_dims;
} adj_reduce_attrs;
typedef struct { /* batch_norm, _grad_sums, _grad */
    double epsilon;
    int64_t format;
} adj_batch_norm_attrs;
typedef struct { /* group_norm, _grad_sums, _grad */
    double epsilon;
    int64_t groups, format;
} adj_group_norm_attrs;
typedef struct { /* dropout */
    double rate;
    uint64_t seed;
    int64_t first; /* index of x's first element in the larger value that x is a shard of */
} adj_dropout_attrs;
typedef struct { /* momentum: mu, decay; sgd_step: decay alone */
    double mu, decay;
} adj_decay_attrs;
/* The constants of Adam (Kingma and Ba, 2014). */
typedef struct {
    double beta1, beta2, epsilon, decay; /* decay: decoupled, of AdamW */
} adj_adam_attrs;

/* ---- the ops ---- */

/* The built-in ops, named after their builders in adjoint_ops.h and ops/grad.h;
 * max_pool_argmax and max_pool_grad_argmax have no builder. */
ADJ_API extern const adj_op adj_op_input, adj_op_param, adj_op_state, adj_op_const, adj_op_fill;
ADJ_API extern const adj_op adj_op_conv2d, adj_op_conv2d_backprop_input,
    adj_op_conv2d_backprop_filter;
ADJ_API extern const adj_op adj_op_depthwise_conv2d_native,
    adj_op_depthwise_conv2d_native_backprop_input, adj_op_depthwise_conv2d_native_backprop_filter;
ADJ_API extern const adj_op adj_op_max_pool, adj_op_max_pool_grad, adj_op_max_pool_grad_grad,
    adj_op_max_pool_argmax, adj_op_max_pool_grad_argmax, adj_op_avg_pool, adj_op_avg_pool_grad;
ADJ_API extern const adj_op adj_op_resize, adj_op_resize_grad;
ADJ_API extern const adj_op adj_op_bias_add, adj_op_bias_add_grad;
ADJ_API extern const adj_op adj_op_relu, adj_op_relu6, adj_op_leaky_relu, adj_op_sigmoid,
    adj_op_tanh, adj_op_silu, adj_op_hard_sigmoid, adj_op_hard_swish, adj_op_clip, adj_op_elu,
    adj_op_gelu, adj_op_softplus, adj_op_erf, adj_op_prelu;
ADJ_API extern const adj_op adj_op_relu_grad, adj_op_relu6_grad, adj_op_leaky_relu_grad,
    adj_op_sigmoid_grad, adj_op_tanh_grad, adj_op_silu_grad, adj_op_hard_sigmoid_grad,
    adj_op_hard_swish_grad, adj_op_clip_grad, adj_op_elu_grad, adj_op_gelu_grad, adj_op_prelu_grad,
    adj_op_prelu_grad_slope;
ADJ_API extern const adj_op adj_op_add, adj_op_sub, adj_op_mul, adj_op_div, adj_op_maximum,
    adj_op_minimum, adj_op_equal, adj_op_greater_equal, adj_op_pow;
ADJ_API extern const adj_op adj_op_neg, adj_op_scale, adj_op_square, adj_op_sqrt, adj_op_exp,
    adj_op_log;
ADJ_API extern const adj_op adj_op_select, adj_op_all_finite;
ADJ_API extern const adj_op adj_op_cast, adj_op_stop_gradient;
ADJ_API extern const adj_op adj_op_matmul, adj_op_reshape, adj_op_transpose, adj_op_concat,
    adj_op_pad, adj_op_slice, adj_op_broadcast_to;
ADJ_API extern const adj_op adj_op_reduce_sum, adj_op_reduce_mean, adj_op_reduce_max, adj_op_argmax;
ADJ_API extern const adj_op adj_op_batch_norm_stats, adj_op_batch_norm, adj_op_batch_norm_grad_sums,
    adj_op_batch_norm_grad;
ADJ_API extern const adj_op adj_op_group_norm, adj_op_group_norm_grad_sums, adj_op_group_norm_grad;
ADJ_API extern const adj_op adj_op_softmax, adj_op_log_softmax;
ADJ_API extern const adj_op adj_op_softmax_cross_entropy, adj_op_softmax_cross_entropy_grad,
    adj_op_sparse_softmax_cross_entropy, adj_op_sparse_softmax_cross_entropy_grad,
    adj_op_label_count;
ADJ_API extern const adj_op adj_op_dropout;
ADJ_API extern const adj_op adj_op_all_reduce;
ADJ_API extern const adj_op adj_op_all_reduce_start;
ADJ_API extern const adj_op adj_op_all_reduce_wait;
ADJ_API extern const adj_op adj_op_momentum, adj_op_sgd_step, adj_op_ema, adj_op_adam_step,
    adj_op_next_step;

#endif
