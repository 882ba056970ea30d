/* adjoint_ext.h - for authors of ops: node, op, help for shape rules, attributes; and, in
 * adjoint_backend.h, for authors of backends. No ABI promise.
 *
 * An op is one const struct of facts and small functions (adj_op). */
#ifndef ADJOINT_EXT_H
#define ADJOINT_EXT_H

#include "adjoint.h"
#include "adjoint_ops_grad.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct adj_op adj_op;

/* Who reads a node. */
typedef struct {
    int n_user;                  /* how many */
    const adj_node *const *user; /* each once, in id order */
    int is_root; /* fetched or assigned by an update: it must be there, and leave its group */
} adj_uses;

struct adj_node {     /* constant once created, but for its label */
    const adj_op *op; /* what it is */
    adj_graph *graph; /* the one it belongs to */
    uint32_t id;      /* larger than the id of every operand */
    adj_role role;    /* what it was made for */
    int clone; /* the number of a copy for the gradient, which is not the node it equals; 0: none */
    adj_type type;     /* of its value */
    int n_in;          /* operands */
    adj_node **in;     /* the operands */
    const void *attrs; /* adj_attr_size(op) bytes */
    const char *name;  /* NULL: none */
};

typedef struct adj_conv_geom adj_conv_geom; /* of a convolution or pool, below */
enum { ADJ_NAMED_OPERANDS = 5 };
enum { ADJ_IMAGE_RESULT = 1 << 8 }; /* in adj_op.images: the result */
enum { ADJ_MANY = -1 };             /* adj_op.n_in: one or more */

/* What the core needs to know of an op; bits of adj_op.flags. */
typedef enum {
    ADJ_OP_LEAF = 1, /* a value from outside: input, param, state, const */
    ADJ_OP_KEPT = 2, /* a leaf that updates may assign: param, state */
    ADJ_OP_ELEMENTWISE =
        4, /* element i of the result needs only element i of each operand (or its broadcast) */
    ADJ_OP_RANDOM = 8,       /* draws numbers, from its operands and attributes alone */
    ADJ_OP_KINKS = 16,       /* kinks between straight pieces; ops with kinks between curved ones
                                keep away from them in domain */
    ADJ_OP_NO_GRADIENT = 32, /* constant for adj_grad by definition: gradients stop here */
    ADJ_OP_VIEW = 64,        /* operand 0's elements in the same order: nothing to compute */
    /* In mixed precision: computed in the half type if its operands are of it (activations, pools,
     * what moves data); always (convolutions, matmul); always, but the result, sums over a batch,
     * is wanted in f32 (filter gradients). Anything else is computed in f32. */
    ADJ_OP_HALF = 128,
    ADJ_OP_HALF_ALWAYS = 256,
    ADJ_OP_HALF_SUM = 512,
    ADJ_OP_CAN_FAIL = 1024, /* on its operands' values: labels out of range */
    ADJ_OP_CHEAP = 2048,    /* may be recomputed rather than kept (adj_exec_opts.recompute) */
    ADJ_OP_INTERNAL = 4096, /* only passes of the executor make such nodes: it has no builder */
    ADJ_OP_TYPED = 8192, /* the attributes begin with an element type, an int64_t: the result's */
    ADJ_OP_COLLECTIVE = 16384 /* all processes of a group compute it together: in every run */
} adj_op_flags;

/* ---- what an op says of its attributes ---- */

/* How an attribute is stored, printed and read. */
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

/* One attribute: a member of the attributes' struct. */
typedef struct {
    const char *name;   /* the builder's parameter; NULL: the end of a list */
    adj_attr_kind kind; /* how it is stored */
    size_t offset;      /* in the attributes' struct */
    const char *shown;  /* printed before the value; NULL: only flags, choices and formats are */
    /* What a value must be, in words that follow "expected", and the range they describe; NULL:
     * finite. For numbers. */
    const char *expected;
    double min, max;          /* the range */
    const char *const *words; /* of a choice, in the order of its values; ended by NULL */
    /* What a command line means that does not say it: usual, or a number that follows from operand
     * 0's shape, axis by axis for lists. */
    double usual;
    double (*usual_of)(adj_shape x, adj_format format, int axis); /* NULL: usual */
    int is_free;                                                  /* any number will do, NaN too */
    int is_quiet;                                                 /* not shown if 0 */
    int from_result; /* a dtype or shape: the result's */
} adj_attr;

enum { ADJ_ATTRS = 6 };

/* A struct of attributes: command line, printing and checks of values follow from it. */
typedef struct {
    size_t size;              /* compared byte for byte: no padding, zeroed first */
    adj_attr attr[ADJ_ATTRS]; /* in the order of the builder's parameters */
    /* Optional, where the rows do not say it: prints the attributes, such as " SAME s2x2"; starts
     * with a space. */
    void (*show)(const void *attrs, FILE *f);
    /* Optional, where no row is a format: turns the attributes into those of the same op on images
     * of that format. */
    void (*set_format)(void *attrs, adj_format format);
    size_t geom; /* where the geometry of the op's windows is, an adj_conv_geom; 0: it has none */
} adj_schema;

/* The i-th number that adj_node_variant gives an attribute that is stored in 8 bytes; 0: there are
 * no more. */
ADJ_API int adj_attr_value(const adj_attr *a, int i, int64_t *to);

/* An op: facts and functions, constant. version is not among them: adj_node_new_with has it. */
struct adj_op {
    const char *name;         /* "conv2d": as printed and on command lines */
    int n_in;                 /* operands; ADJ_MANY: any number but 0 */
    const adj_schema *schema; /* NULL: no attributes */
    unsigned flags;           /* adj_op_flags */
    unsigned linear_in;       /* bit i: linear in operand i */
    unsigned sum_in;          /* bit i: linear in these operands together, as a sum is; 0: in each
                                 of linear_in by itself, as a product is */
    unsigned half_in;         /* bit i: operand i is of the half type when the op is; 0: all */
    /* Checks operands (all of one graph, none NULL) and attributes (each within what the schema
     * says), completes attrs in place (SAME -> pads) and gives the result's type. On failure:
     * return adj_fail(n->graph, ...). n->id, n->type and n->attrs are not set yet. NULL: operands
     * and result have one float type and one shape. */
    adj_status (*infer)(const adj_node *n, void *attrs, adj_type *out);
    /* Fills dx[0 .. n_in) for the incoming gradient dy, with builders; a dx[i] left NULL: no
     * gradient flows there. No call has two builders among its arguments: nodes are numbered as
     * they are made, and C leaves the order of arguments to the compiler. NULL: there is no rule,
     * adj_grad fails with ADJ_ENOGRAD (unless ADJ_OP_NO_GRADIENT or ADJ_OP_LEAF). */
    void (*grad)(adj_node *y, adj_node *dy, adj_node *dx[]);
    /* Optional: an equal but cheaper node for op(in..., attrs) over the given operands; NULL: keep
     * it. */
    adj_node *(*simplify)(const adj_node *n, adj_node *const in[]);
    /* Optional: as simplify, where that depends on who else reads a value: an equal node that takes
     * fewer passes over memory. uses is indexed by id, for n's graph. */
    adj_node *(*rewrite_with_users)(const adj_node *n, adj_node *const in[], const adj_uses *uses);
    /* Optional: an equal node that reads, in place of a large operand, something small that is
     * worked out earlier, or what is recomputed on the way (adj_node_clone). Taken if a
     * backend before the last computes the node and its new operands. May also make a node that
     * another will ask for, and return NULL. */
    adj_node *(*save_for_backward)(const adj_node *n, adj_node *const in[], const adj_uses *uses);
    /* Optional: a cheaper node for op(in..., attrs), which may differ in rounding; NULL: keep it.
     * Called where n alone reads in[0], and in[1], ... as well as in[0]->in[1], ... follow from
     * parameters that stay: what is made of these alone is computed once, not in every run. */
    adj_node *(*fold)(const adj_node *n, adj_node *const in[]);
    /* Optional: nominal multiplications and additions; NULL: one for each element of the result. */
    double (*flop)(const adj_node *n);

    /* ---- for checks, comparisons and reports; all optional ---- */

    const char *operand[ADJ_NAMED_OPERANDS]; /* what they are called; NULL: x0, x1, ... */
    /* Bit i: operand i is images in the attributes' data format; ADJ_IMAGE_RESULT: so is the
     * result. An image of the result follows from the operands' images of its number alone, a
     * result that is no image is their sum, or as merge says. Of the attributes only the geometry
     * (adj_schema.geom) may depend on how many images there are. */
    unsigned images;
    int filter;              /* 1 + i: operand i is a filter; 0: none is */
    const char *filter_axes; /* a letter each: "hwco"; m for depthwise's multiplier. Required where
                                filter is not 0 */
    unsigned cancels_in;     /* bit i: the result is a sum of terms, each linear in operand i, that
                                may be far larger than it; for ops that are not linear_in it */
    /* Takes operand i's values, random in [-1, 1), to where the op is defined and smooth
     * (adj_spread helps). */
    void (*domain)(const adj_node *n, int i, int64_t count, double v[]);
    /* The number of terms in the longest sum behind an element of the result, where that is more
     * than flop or the operands' size come to for each. */
    double (*sum_length)(const adj_node *n);
    /* What each operand is where only shapes are given: --in's X, and --filter's. A letter each;
     * NULL: x, for two operands xf.
     *   x  X                            m  a matrix: X, or its first size and all else
     *   f  --filter, or X               q  --filter, or a matrix that operand 0 times it exists
     *   l  --filter, or [X's last size] t  X if there are --attr, else [X's last size]
     *   h  --filter, or [3, 3, channels, 4]; d the same with 2
     *   p  --filter, or [channels]      b  [channels]
     *   c  [channels] of the statistics type (f32 for half types), s [2, channels] of it
     *   n  X's first size of i32        i  an i32                 r  a number
     * Of an op with a forward: 0, 1 that op's operands and y its result, themselves; Y and X other
     * values like its result and its first operand. */
    const char *example;
    const adj_op *forward; /* the op that this one is a gradient of, whose attributes it has */
    /* The op that computes operand i in training, from this op's operands and attributes of the
     * same names: in an example, S says that it does, s that an input is there. --attr chooses with
     * the operand's name: 1 is computed, 2 from other values, 0 an input. Rules may look at what
     * made such an operand. */
    const adj_op *maker[ADJ_NAMED_OPERANDS];
};

/* Bytes of the op's attributes; 0: it has none. */
static inline size_t adj_attr_size(const adj_op *op)
{
    return op->schema != NULL ? op->schema->size : 0;
}

/* Adds op(in..., attrs), or returns the equal node that exists. attrs: adj_attr_size(op) bytes,
 * copied. NULL if an operand is NULL or on error. in and attrs need not outlive the call. version
 * is ADJ_VERSION of whoever compiled op: for another layout the graph fails with ADJ_EVERSION, and
 * nothing of op is read. The calls below pass it on, so that no op has to name it. */
ADJ_API adj_node *adj_node_new_with(int version, adj_graph *g, const adj_op *op, int n_in,
                                    adj_node *const in[], const void *attrs);
/* The same for this header's version. */
static inline adj_node *adj_node_new(adj_graph *g, const adj_op *op, int n_in, adj_node *const in[],
                                     const void *attrs)
{
    return adj_node_new_with(ADJ_VERSION, g, op, n_in, in, attrs);
}
/* The same for ops of one, two, three operands; the graph is the first operand's. */
static inline adj_node *adj_node_new1(const adj_op *op, adj_node *a, const void *attrs)
{
    return a != NULL ? adj_node_new(adj_node_graph(a), op, 1, &a, attrs) : NULL;
}
/* Of two operands. */
static inline adj_node *adj_node_new2(const adj_op *op, adj_node *a, adj_node *b, const void *attrs)
{
    adj_node *in[] = {a, b};
    return a != NULL ? adj_node_new(adj_node_graph(a), op, 2, in, attrs) : NULL;
}
/* Of three operands. */
static inline adj_node *adj_node_new3(const adj_op *op, adj_node *a, adj_node *b, adj_node *c,
                                      const void *attrs)
{
    adj_node *in[] = {a, b, c};
    return a != NULL ? adj_node_new(adj_node_graph(a), op, 3, in, attrs) : NULL;
}
/* A copy of n over other operands that is computed by itself: no equal node stands for it but
 * copies of that number, which is 2 or more (1 is adj_exec_opts.recompute's). */
ADJ_API adj_node *adj_node_clone(const adj_node *n, adj_node *const in[], int copy);

/* Where node is in the list; -1: it is not there. */
ADJ_API int adj_position(int n, const adj_node *const list[], const adj_node *node);
/* Of operand among n's, the first if it is there twice. */
static inline int adj_operand_position(const adj_node *n, const adj_node *operand)
{
    return adj_position(n->n_in, (const adj_node *const *)n->in, operand);
}
/* The only reader of a value that nothing else needs; NULL: there is no such node. */
ADJ_API const adj_node *adj_only_user(const adj_node *n, const adj_uses *uses);
/* The reader of n's first operand that has this op, takes that operand first too, and has n's
 * attributes; NULL: there is none. Both ops have attributes of one type. */
ADJ_API const adj_node *adj_sibling(const adj_node *n, const adj_op *op, const adj_uses *uses);
/* Prints the attributes, each after a space. */
ADJ_API void adj_show_attrs(const adj_node *n, FILE *f);
/* NHWC where there is none. */
ADJ_API adj_format adj_format_of(const adj_node *n);
/* Turns a copy of n's attributes into those on images of that format; 0: they are, or its operands
 * are no images of rank 4. */
ADJ_API int adj_set_format(const adj_node *n, void *attrs, adj_format format);
/* The geometry of the op's windows; NULL: it has none. */
ADJ_API const adj_conv_geom *adj_node_geom(const adj_node *n);
/* Zeroed memory that lives as long as the graph; NULL (and the graph fails) when none is left. */
ADJ_API void *adj_graph_alloc(adj_graph *g, size_t bytes);

/* ---- help for infer functions ---- */

/* A short text by value. */
typedef struct {
    char s[160]; /* ends with 0 */
} adj_text;
ADJ_API adj_text adj_shape_text(adj_shape shape); /* "[1, 28, 28, 3]" */
/* Rank and dimensions in range, product of dimensions and bytes within int64. name: the value's. */
ADJ_API adj_status adj_check_type(adj_graph *g, const char *op, const char *name, adj_type type);
/* Are rank and sizes the same? */
ADJ_API int adj_shape_equal(adj_shape a, adj_shape b);
/* f32, f64, f16, bf16. */
ADJ_API int adj_is_float(adj_dtype dtype);
ADJ_API int adj_is_half(adj_dtype dtype); /* f16, bf16 */
/* All operands have the dtype of operand 0, which is a float; else ADJ_EDTYPE naming the op. */
ADJ_API adj_status adj_check_same_dtype(const adj_node *n);
/* The first count operands have one type, a float, and one shape: *out. */
ADJ_API adj_status adj_check_same(const adj_node *n, int count, adj_type *out);
/* Operand i has that type. */
ADJ_API adj_status adj_check_operand(const adj_node *n, int i, adj_type want);
/* For gradients: sums x over what broadcasting added, to the given shape. */
ADJ_API adj_node *adj_sum_to(adj_node *x, adj_shape shape);
/* A list of axes of x as bits; op is named where it is no such list. */
ADJ_API adj_status adj_axes_as_bits(const adj_node *x, const adj_op *op, const adj_axes *axes,
                                    int64_t *bits);
/* A fill of v's type. */
ADJ_API adj_node *adj_fill_like(adj_node *v, double value);
/* Is it an adj_fill, and of what? */
ADJ_API int adj_is_fill(const adj_node *n, double *value);
/* adj_op.simplify of an op whose result has elements of its operand alone: an unchanged shape is
 * the operand itself, a fill stays one. */
ADJ_API adj_node *adj_simplify_selection(const adj_node *n, adj_node *const in[]);

/* ---- numbers ---- */

/* What is known of an element type. Of one that is no float type all but name and bytes is 0. */
typedef struct {
    const char *name;               /* "f32" */
    size_t bytes;                   /* of one element */
    int significand;                /* bits, the hidden one counted */
    int min_exponent, max_exponent; /* of normal numbers: the smallest is 2^min_exponent */
    double unit;  /* 2^-significand: rounding to nearest errs by this times the value at most */
    double floor; /* a kernel may take smaller ones as 0 */
} adj_dtype_traits;
/* Never NULL: for a value that is no dtype, of 0 bytes. */
ADJ_API const adj_dtype_traits *adj_traits_of(adj_dtype dtype);

/* Element i of data. */
ADJ_API double adj_load(adj_dtype dtype, const void *data, int64_t i);
/* Sets element i of data to value, rounded once. */
ADJ_API void adj_store(adj_dtype dtype, void *data, int64_t i, double value);
/* n elements, each as adj_store of adj_load; the bits are kept if the types are the same. */
ADJ_API void adj_convert(adj_dtype from, const void *v, adj_dtype to, void *converted, int64_t n);
/* Philox4x32-10: four words for (counter, key). */
ADJ_API void adj_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);
/* Draws n elements; element i depends on (seed, stream, i) only. */
ADJ_API void adj_draw(adj_dtype dtype, void *data, int64_t n, adj_init init, uint64_t seed,
                      uint64_t stream);

/* Takes v in [-1, 1) to [low, high). */
ADJ_API void adj_spread(int64_t n, double v[], double low, double high);

/* ---- attributes as nodes store them; no struct has padding ---- */

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

typedef struct { /* the six convolutions: as given, and the geometry */
    adj_conv conv;
    adj_conv_geom geom;
} adj_conv_attrs;
/* The pools; kc: the depth window, which is its own stride (1: none). max_pool_argmax(x) is where
 * in each window max_pool's result is, as an i32: (i*kw + j)*kc + c for row i, column j and channel
 * c of the window, pads included. max_pool_grad_argmax(argmax, dy) is max_pool_grad with it. */
typedef struct {
    adj_pool pool;      /* as given */
    adj_conv_geom geom; /* resolved */
    int64_t kc;         /* 1 but for a window over channels */
} adj_pool_attrs;
typedef struct { /* input, param, state */
    int64_t dtype;
    adj_shape shape;
    double a, b;
    int64_t init;     /* adj_init_kind */
    int64_t is_drawn; /* 0: an input without a value until it is set */
    uint64_t serial;  /* tells leaves apart */
} adj_leaf_attrs;
typedef struct { /* const */
    int64_t dtype;
    adj_shape shape;
    const void *data; /* the user's graph's */
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
typedef struct { /* resize and its gradient: from ih x iw to oh x ow, whichever way it goes */
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
typedef struct { /* concat: not negative */
    int64_t axis;
} adj_axis_attrs;
typedef struct { /* pad: before, after; slice: begin, size */
    adj_shape a, b;
} adj_range_attrs;
typedef struct { /* reduce_sum, _mean, _max: bit i of axes: reduced over axis i */
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
    int64_t first; /* the number of x's first element, where x is a part of a larger value */
} adj_dropout_attrs;
typedef struct { /* momentum: mu, decay; sgd_step: decay alone */
    double mu, decay;
} adj_decay_attrs;

/* ---- the ops ---- */

/* NULL-ended; the only file that names concrete ops. */
ADJ_API extern const adj_op *const adj_ops[];

/* What each builder of adjoint_ops.h adds, by its name; the two of max_pool with argmax have no
 * builder. */
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

#ifdef __cplusplus
}
#endif

#include "adjoint_backend.h"
#endif
