/* adjoint_ext.h - for authors of ops: node, op, helpers for shape rules, attributes; and, in
 * adjoint_backend.h, for authors of backends. Its ABI may change in any version.
 *
 * An op is one const struct (adj_op) of facts and small functions. */
#ifndef ADJOINT_EXT_H
#define ADJOINT_EXT_H

#include "adjoint.h"
#include "adjoint_ops_grad.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct adj_op adj_op;

/* Readers of a node. */
typedef struct {
    int n_user;                  /* number of readers */
    const adj_node *const *user; /* the readers, each once, in id order */
    int is_root; /* 1: fetched or assigned by an update, so it must be computed and be a result of
                    its group */
} adj_uses;

struct adj_node {     /* immutable once created, except its label */
    const adj_op *op; /* its op */
    adj_graph *graph; /* its graph */
    uint32_t id;      /* larger than the id of every operand */
    adj_role role;    /* forward, gradient or update */
    int clone;     /* > 0: number of a copy made for recomputation, which is distinct from the equal
                      node; 0: no copy */
    adj_type type; /* type of its value */
    int n_in;      /* operands */
    adj_node **in; /* the operands */
    const void *attrs; /* adj_attr_size(op) bytes */
    const char *name;  /* NULL: none */
};

typedef struct adj_conv_geom adj_conv_geom; /* geometry of a convolution or pool, defined below */
enum { ADJ_NAMED_OPERANDS = 5 };
enum { ADJ_IMAGE_RESULT = 1 << 8 }; /* bit of adj_op.images for the result */
enum { ADJ_MANY = -1 };             /* value of adj_op.n_in: one or more operands */

/* Properties of an op: bits of adj_op.flags. */
typedef enum {
    ADJ_OP_LEAF = 1, /* a value from outside: input, param, state, const */
    ADJ_OP_KEPT = 2, /* a leaf that updates may assign: param, state */
    ADJ_OP_ELEMENTWISE =
        4, /* element i of the result needs only element i of each operand (or its broadcast) */
    ADJ_OP_RANDOM = 8, /* draws random numbers, determined by its operands and attributes */
    ADJ_OP_KINKS = 16, /* piecewise linear with kinks; ops with kinks between curved pieces avoid
                          them by `domain` */
    ADJ_OP_NO_GRADIENT = 32, /* constant for adj_grad by definition: gradients stop here */
    ADJ_OP_VIEW = 64,        /* operand 0's elements in the same order: nothing to compute */
    /* Mixed precision. HALF: computed in the half type if the operands have it (activations, pools,
     * data movement). HALF_ALWAYS: always in the half type (convolutions, matmul). HALF_SUM:
     * operands in the half type, result in f32 because it sums over a batch (filter gradients).
     * Other ops are computed in f32. */
    ADJ_OP_HALF = 128,
    ADJ_OP_HALF_ALWAYS = 256,
    ADJ_OP_HALF_SUM = 512,
    /* May fail on the values of its operands, such as labels out of range. */
    ADJ_OP_CAN_FAIL = 1024,
    ADJ_OP_CHEAP = 2048,    /* cheap enough to recompute (adj_exec_opts.recompute) */
    ADJ_OP_INTERNAL = 4096, /* only passes of the executor add such nodes; the op has no builder */
    ADJ_OP_TYPED = 8192,    /* the attributes begin with the result's element type, an int64_t */
    ADJ_OP_COLLECTIVE = 16384 /* all processes of a group compute it together, in every run */
} adj_op_flags;

/* ---- schemas of attributes ---- */

/* Kind of an attribute: its storage and text form. */
typedef enum {
    ADJ_ATTR_REAL,     /* double */
    ADJ_ATTR_INT,      /* int64_t */
    ADJ_ATTR_SEED,     /* uint64_t */
    ADJ_ATTR_FLAG,     /* int64_t, 0 or 1; shown as its name if 1 */
    ADJ_ATTR_CHOICE,   /* int64_t: one of words */
    ADJ_ATTR_FORMAT,   /* int64_t: an adj_format; shown if NCHW */
    ADJ_ATTR_DTYPE,    /* int64_t: an adj_dtype */
    ADJ_ATTR_SHAPE,    /* adj_shape */
    ADJ_ATTR_PER_AXIS, /* adj_shape: a number for each axis of operand 0 */
    ADJ_ATTR_PERM,     /* int64_t[ADJ_MAX_RANK]: operand 0's axes in another order */
    ADJ_ATTR_AXES,     /* int64_t: bit i is operand 0's axis i */
    ADJ_ATTR_CONV,     /* adj_conv */
    ADJ_ATTR_POOL      /* adj_pool */
} adj_attr_kind;

/* Schema of one attribute: a member of the attributes' struct. */
typedef struct {
    const char *name;   /* name of the builder's parameter; NULL: end of the list */
    adj_attr_kind kind; /* storage and text form */
    size_t offset;      /* offset in the attributes' struct */
    const char *shown;  /* text printed before the value; NULL: only flags, choices and formats are
                           printed */
    /* Valid range of a number in words that follow "expected" in messages; NULL: any finite number.
     */
    const char *expected;
    double min, max;          /* the valid range, if expected is not NULL */
    const char *const *words; /* words of a choice in the order of its values, NULL-terminated */
    /* Default on the command line: usual, or usual_of, which computes it from the shape of operand
     * 0, axis by axis for lists. */
    double usual;
    double (*usual_of)(adj_shape x, adj_format format, int axis); /* NULL: usual */
    int is_free;     /* 1: any number is valid, NaN included */
    int is_quiet;    /* 1: not printed if 0 */
    int from_result; /* 1: a dtype or shape that is that of the result */
} adj_attr;

enum { ADJ_ATTRS = 6 };

/* Schema of a struct of attributes. Command line, printing and checks of values are derived from
 * it. */
typedef struct {
    /* Bytes of the struct, which is compared by memcmp: zeroed first, without padding. */
    size_t size;
    adj_attr attr[ADJ_ATTRS]; /* in the order of the builder's parameters */
    /* Optional: prints the attributes, such as " SAME s2x2", starting with a space. NULL: printed
     * by the rows of attr. */
    void (*show)(const void *attrs, FILE *f);
    /* Optional, for schemas without a format attribute: converts the attributes to those of the
     * same op on images of that format. */
    void (*set_format)(void *attrs, adj_format format);
    size_t geom; /* offset of the geometry of the op's windows (adj_conv_geom); 0: none */
} adj_schema;

/* Sets *to to the i-th value that adj_node_variant tries for an attribute of 8 bytes; returns 0
 * past the last. */
ADJ_API int adj_attr_value(const adj_attr *a, int i, int64_t *to);

/* An op: constant facts and functions. Its version is an argument of adj_node_new_with. */
struct adj_op {
    const char *name;         /* name in listings and on command lines, such as "conv2d" */
    int n_in;                 /* number of operands; ADJ_MANY: one or more */
    const adj_schema *schema; /* NULL: no attributes */
    unsigned flags;           /* adj_op_flags */
    unsigned linear_in;       /* bit i: linear in operand i */
    unsigned sum_in;  /* bit i: jointly linear in these operands, like a sum; 0: linear in each of
                         linear_in separately, like a product */
    unsigned half_in; /* bit i: in mixed precision operand i has the half type; 0: all operands */
    /* Shape rule: checks operands (all of one graph, none NULL) and attributes (each in the
     * schema's range), completes attrs in place (SAME -> pads) and sets the result's type. On
     * failure it returns adj_fail(n->graph, ...). n->id, n->type and n->attrs are not set yet.
     * NULL: operands and result have one float type and one shape. */
    adj_status (*infer)(const adj_node *n, void *attrs, adj_type *out);
    /* Gradient rule: sets dx[0 .. n_in) to the gradients for the upstream gradient dy, made by
     * builders. dx[i] left NULL: no gradient flows to operand i. Do not nest two builder calls in
     * one argument list: C does not define their order, and nodes are numbered in order of
     * creation. NULL: no rule; adj_grad fails with ADJ_ENOGRAD, unless the op is ADJ_OP_NO_GRADIENT
     * or ADJ_OP_LEAF. */
    void (*grad)(adj_node *y, adj_node *dy, adj_node *dx[]);
    /* Optional: returns a cheaper node with the same value as op(in..., attrs), or NULL to keep the
     * node. */
    adj_node *(*simplify)(const adj_node *n, adj_node *const in[]);
    /* Optional: like simplify, for rewrites that depend on the other readers of a value and save
     * passes over memory. uses is indexed by node id of n's graph. */
    adj_node *(*rewrite_with_users)(const adj_node *n, adj_node *const in[], const adj_uses *uses);
    /* Optional: returns an equal node that reads a small value computed in the forward pass, or a
     * recomputed value (adj_node_clone), instead of a large operand. Used if a backend other than
     * the last computes the node and its new operands. It may also add a node that a later call
     * needs, and return NULL. */
    adj_node *(*save_for_backward)(const adj_node *n, adj_node *const in[], const adj_uses *uses);
    /* Optional: returns a cheaper node for op(in..., attrs), which may differ in rounding, or NULL
     * to keep the node. Called where n is the only reader of in[0], and where in[1], ... and
     * in[0]->in[1], ... depend only on parameters that no update changes: nodes made of these alone
     * are computed once, not in every run. */
    adj_node *(*fold)(const adj_node *n, adj_node *const in[]);
    /* Optional: nominal multiplications and additions; NULL: one for each element of the result. */
    double (*flop)(const adj_node *n);

    /* ---- for checks, comparisons and reports; all optional ---- */

    const char *operand[ADJ_NAMED_OPERANDS]; /* names of the operands; NULL: x0, x1, ... */
    /* Bit i: operand i is a batch of images in the attributes' data format; ADJ_IMAGE_RESULT: so is
     * the result. Image k of the result depends only on image k of these operands; a result that is
     * not a batch of images is a sum over images. Of the attributes only the geometry
     * (adj_schema.geom) may depend on the number of images. */
    unsigned images;
    int filter;              /* 1 + i: operand i is a filter; 0: no filter */
    const char *filter_axes; /* axes of the filter, a letter each: "hwco"; m for the multiplier of
                                depthwise. Required where filter is not 0 */
    unsigned cancels_in; /* bit i: the result is a sum of terms, each linear in operand i, that may
                            cancel; for operands that are not in linear_in */
    /* Maps random values of operand i from [-1, 1) to the range where the op is defined and smooth
     * (see adj_spread). */
    void (*domain)(const adj_node *n, int i, int64_t count, double v[]);
    /* Returns the number of terms of the longest sum behind an element of the result, where flop
     * and the sizes of the operands underestimate it. */
    double (*sum_length)(const adj_node *n);
    /* Kind of each operand when only shapes are given (--in X and --filter), a letter each; NULL:
     * x, for two operands xf.
     *   x  X                            m  a matrix: X, or [X's first size, all else]
     *   f  --filter, or X               q  --filter, or a right factor of operand 0
     *   l  --filter, or [X's last size] t  X if there are --attr, else [X's last size]
     *   h  --filter, or [3, 3, channels, 4]; d: or [3, 3, channels, 2]
     *   p  --filter, or [channels]      b  [channels]
     *   c  [channels] of the statistics type (f32 for half types), s [2, channels] of that type
     *   n  X's first size of i32        i  an i32                 r  a number
     * For an op with a forward: 0 and 1 are operands of the forward op and y its result; Y and X
     * are other values with the types of its result and its first operand. */
    const char *example;
    /* The op that this one is a gradient of; both have the same attributes. */
    const adj_op *forward;
    /* The op that computes operand i in training, from this op's operands and attributes of the
     * same names. In `example`, S stands for the computed operand, s for an input. On the command
     * line --attr OPERAND=1 selects the computed operand, 2 one computed from other values, 0 an
     * input. Gradient rules may depend on the op of such an operand. */
    const adj_op *maker[ADJ_NAMED_OPERANDS];
};

/* Returns the bytes of the op's attributes; 0 without attributes. */
static inline size_t adj_attr_size(const adj_op *op)
{
    return op->schema != NULL ? op->schema->size : 0;
}

/* Adds the node op(in..., attrs), or returns an equal node that exists. attrs: adj_attr_size(op)
 * bytes. in and attrs are copied. Returns NULL if an operand is NULL or on error. version is the
 * ADJ_VERSION that op was compiled with: another struct layout sets the graph's error to
 * ADJ_EVERSION without reading op. The functions below pass it on. */
ADJ_API adj_node *adj_node_new_with(int version, adj_graph *g, const adj_op *op, int n_in,
                                    adj_node *const in[], const void *attrs);
/* Adds a node like adj_node_new_with, with this header's version. */
static inline adj_node *adj_node_new(adj_graph *g, const adj_op *op, int n_in, adj_node *const in[],
                                     const void *attrs)
{
    return adj_node_new_with(ADJ_VERSION, g, op, n_in, in, attrs);
}
/* Adds a node of one operand, to that operand's graph. */
static inline adj_node *adj_node_new1(const adj_op *op, adj_node *a, const void *attrs)
{
    return a != NULL ? adj_node_new(adj_node_graph(a), op, 1, &a, attrs) : NULL;
}
/* Adds a node of two operands, to the first operand's graph. */
static inline adj_node *adj_node_new2(const adj_op *op, adj_node *a, adj_node *b, const void *attrs)
{
    adj_node *in[] = {a, b};
    return a != NULL ? adj_node_new(adj_node_graph(a), op, 2, in, attrs) : NULL;
}
/* Adds a node of three operands, to the first operand's graph. */
static inline adj_node *adj_node_new3(const adj_op *op, adj_node *a, adj_node *b, adj_node *c,
                                      const void *attrs)
{
    adj_node *in[] = {a, b, c};
    return a != NULL ? adj_node_new(adj_node_graph(a), op, 3, in, attrs) : NULL;
}
/* Returns a copy of n over other operands for recomputation: it is never merged with an equal node,
 * except with copies of the same number. copy is 2 or more (1 is used by adj_exec_opts.recompute).
 */
ADJ_API adj_node *adj_node_clone(const adj_node *n, adj_node *const in[], int copy);

/* Returns the index of node in the list; -1 if it is not there. */
ADJ_API int adj_position(int n, const adj_node *const list[], const adj_node *node);
/* Returns the first index of operand among n's operands; -1 if it is not there. */
static inline int adj_operand_position(const adj_node *n, const adj_node *operand)
{
    return adj_position(n->n_in, (const adj_node *const *)n->in, operand);
}
/* Returns the only reader of n, or NULL if n has several readers or is a root. */
ADJ_API const adj_node *adj_only_user(const adj_node *n, const adj_uses *uses);
/* Returns a node of this op with n's first operand as its first operand and with n's attributes, or
 * NULL if there is none. Both ops must have the same type of attributes. */
ADJ_API const adj_node *adj_sibling(const adj_node *n, const adj_op *op, const adj_uses *uses);
/* Prints the attributes, each after a space. */
ADJ_API void adj_show_attrs(const adj_node *n, FILE *f);
/* Returns the data format of the node; NHWC if its op has none. */
ADJ_API adj_format adj_format_of(const adj_node *n);
/* Converts attrs, a copy of n's attributes, to images of that format. Returns 0 if they have that
 * format already, or if n's operands are not images of rank 4. */
ADJ_API int adj_set_format(const adj_node *n, void *attrs, adj_format format);
/* Returns the geometry of the node's windows, or NULL if it has none. */
ADJ_API const adj_conv_geom *adj_node_geom(const adj_node *n);
/* Allocates zeroed memory that lives as long as the graph; when out of memory it sets the graph's
 * error and returns NULL. */
ADJ_API void *adj_graph_alloc(adj_graph *g, size_t bytes);

/* ---- helpers for infer functions ---- */

/* A short text by value. */
typedef struct {
    char s[160]; /* NUL-terminated */
} adj_text;
ADJ_API adj_text adj_shape_text(adj_shape shape); /* "[1, 28, 28, 3]" */
/* Checks that rank and sizes are in range and that elements and bytes fit in int64_t. op and name
 * of the value are used in the message. */
ADJ_API adj_status adj_check_type(adj_graph *g, const char *op, const char *name, adj_type type);
/* True if rank and sizes are equal. */
ADJ_API int adj_shape_equal(adj_shape a, adj_shape b);
/* True for f32, f64, f16 and bf16. */
ADJ_API int adj_is_float(adj_dtype dtype);
ADJ_API int adj_is_half(adj_dtype dtype); /* true for f16 and bf16 */
/* Checks that all operands have the same float type; else ADJ_EDTYPE. */
ADJ_API adj_status adj_check_same_dtype(const adj_node *n);
/* Checks that the first count operands have one float type and one shape, and sets *out to it. */
ADJ_API adj_status adj_check_same(const adj_node *n, int count, adj_type *out);
/* Checks that operand i has that type and shape. */
ADJ_API adj_status adj_check_operand(const adj_node *n, int i, adj_type want);
/* Sums x over broadcast axes to the given shape: the gradient of broadcasting. */
ADJ_API adj_node *adj_sum_to(adj_node *x, adj_shape shape);
/* Converts a list of axes of x to bits. For an invalid list it sets the graph's error; the message
 * names op. */
ADJ_API adj_status adj_axes_as_bits(const adj_node *x, const adj_op *op, const adj_axes *axes,
                                    int64_t *bits);
/* Adds a fill of v's type and shape. */
ADJ_API adj_node *adj_fill_like(adj_node *v, double value);
/* True if n is an adj_fill; *value is then its value. */
ADJ_API int adj_is_fill(const adj_node *n, double *value);
/* An adj_op.simplify for ops whose result consists of elements of their operand: for an unchanged
 * shape it returns the operand, for a fill another fill. */
ADJ_API adj_node *adj_simplify_selection(const adj_node *n, adj_node *const in[]);

/* ---- numbers ---- */

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

/* Returns element i of data. */
ADJ_API double adj_load(adj_dtype dtype, const void *data, int64_t i);
/* Sets element i of data to value, rounded once. */
ADJ_API void adj_store(adj_dtype dtype, void *data, int64_t i, double value);
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

/* Geometry of a convolution or pool after SAME and EXPLICIT are resolved, the same for both
 * formats. */
struct adj_conv_geom {
    int64_t n, ih, iw, ic;  /* input */
    int64_t oh, ow, oc;     /* output */
    int64_t kh, kw;         /* filter or window */
    int64_t sh, sw, dh, dw; /* stride, dilation */
    int64_t pt, pb, pl, pr; /* pads: top, bottom, left, right */
    int64_t groups;         /* 1: dense; ic: depthwise */
    int64_t format;         /* adj_format */
};

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
    const void *data; /* ADJ_INIT_DATA: owned by the user's graph */
    int64_t init;     /* adj_init_kind */
    int64_t is_drawn; /* 0: an input without a value until it is set */
    uint64_t serial;  /* unique number that keeps equal leaves distinct */
} adj_leaf_attrs;
static inline adj_init adj_leaf_init(const adj_leaf_attrs *a)
{
    const adj_init init = {(adj_init_kind)a->init, a->a, a->b, a->data}; /* C++ knows this form */
    return init;
}
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

/* ---- the ops ---- */

/* All built-in ops, NULL-terminated. */
ADJ_API extern const adj_op *const adj_ops[];

/* The built-in ops, named after their builders in adjoint_ops.h and adjoint_ops_grad.h;
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
    adj_op_gelu, adj_op_softplus, adj_op_prelu;
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

/* ---- executors ---- */

/* Options of an executor for checking and debugging ops and backends. Each costs time or memory;
 * all zero turns them off. Read by adj_exec_new. */
typedef struct adj_exec_debug {
    FILE *trace;      /* the graph is printed to this file after each pass */
    const char *impl; /* prefer candidates whose implementation name contains this text */
    int no_passes;    /* run the graph as built, without mixed precision and recompute */
    int no_fusion;    /* every node of the graph as built is a step of its own */
    int no_sharing;   /* every value has its own buffer; nothing is computed in place */
    int profile;      /* time every step: adj_exec_step_at */
    int canaries; /* guard words around all buffers, checked after every step: adj_run fails with
                     ADJ_EBACKEND when a kernel has written out of bounds */
    const struct adj_exec_internal *internal; /* for the library's own code; NULL */
} adj_exec_debug;

#ifdef __cplusplus
}
#endif

#include "adjoint_backend.h"
#endif
