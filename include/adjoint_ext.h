/* adjoint_ext.h - for authors of ops: node, op, helpers for shape rules, attributes; and, in
 * adjoint_backend.h, for authors of backends. Its ABI may change in any version.
 *
 * An op is one const struct (adj_op) of facts and small functions. */
#ifndef ADJOINT_EXT_H
#define ADJOINT_EXT_H

#include "adjoint.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct adj_op adj_op;

/* Readers of a node. */
typedef struct {
    int n_user;                  /* number of readers */
    const adj_node *const *user; /* the readers, each once, in id order */
    int is_root; /* 1: fetched, or the leaf or next value of an update: a result of its group */
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
/* Operand i in a set of operands, such as adj_op.linear_in. */
#define ADJ_IN(i) (1U << (i))
/* All operands, for ops with ADJ_MANY. */
#define ADJ_ALL_IN (~0U)
enum { ADJ_IMAGE_RESULT = 1 << 8 }; /* the result, in adj_op.images */
enum { ADJ_MANY = -1 };             /* value of adj_op.n_in: one or more operands */

/* Type of an example operand, made from the command line's --in (X below) and --filter. */
typedef enum {
    ADJ_EXAMPLE_NONE,                /* no operand */
    ADJ_EXAMPLE_X,                   /* X */
    ADJ_EXAMPLE_ROW_OR_X,            /* [X's last size]; X if --attr is given */
    ADJ_EXAMPLE_CHANNELS,            /* [channels] */
    ADJ_EXAMPLE_STATISTIC,           /* [channels] of the statistics type: f32 for half types */
    ADJ_EXAMPLE_STATISTICS,          /* [2, channels] of that type, an input */
    ADJ_EXAMPLE_COMPUTED_STATISTICS, /* the same, computed by adj_op.maker */
    ADJ_EXAMPLE_MATRIX,  /* X, reshaped to [X's first size, the rest] unless it is a matrix */
    ADJ_EXAMPLE_LABELS,  /* [X's first size] of i32 */
    ADJ_EXAMPLE_INTEGER, /* a scalar of i32 */
    ADJ_EXAMPLE_NUMBER,  /* a scalar */
    /* The shape of --filter; without it X, or the shape named here. */
    ADJ_EXAMPLE_FILTER_OR_X,
    ADJ_EXAMPLE_FILTER_OR_ROW,      /* [X's last size] */
    ADJ_EXAMPLE_FILTER_OR_CHANNELS, /* [channels] */
    ADJ_EXAMPLE_CONV_FILTER,        /* [3, 3, channels, 4] */
    ADJ_EXAMPLE_DEPTHWISE_FILTER,   /* [3, 3, channels, 2] */
    ADJ_EXAMPLE_RIGHT_FACTOR,       /* a matrix that operand 0 can be multiplied by */
    /* For an op with a forward: values of the forward op, and other values of their types. */
    ADJ_EXAMPLE_OPERAND_0,
    ADJ_EXAMPLE_OPERAND_1,
    ADJ_EXAMPLE_RESULT,
    ADJ_EXAMPLE_LIKE_OPERAND, /* another value of operand 0's type */
    ADJ_EXAMPLE_LIKE_RESULT   /* another value of the result's type */
} adj_example;

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
     * Other ops are computed in f32. HALF_IMAGES: of the operands only images have the half type.
     */
    ADJ_OP_HALF = 128,
    ADJ_OP_HALF_ALWAYS = 256,
    ADJ_OP_HALF_SUM = 512,
    /* May fail on the values of its operands, such as labels out of range. */
    ADJ_OP_CAN_FAIL = 1024,
    ADJ_OP_CHEAP = 2048,    /* cheap enough to recompute (adj_exec_opts.recompute) */
    ADJ_OP_INTERNAL = 4096, /* only passes of the executor add such nodes; the op has no builder */
    ADJ_OP_TYPED = 8192,    /* the attributes begin with the result's element type, an int64_t */
    ADJ_OP_COLLECTIVE = 16384, /* all processes of a group compute it together, in every run */
    ADJ_OP_HALF_IMAGES = 32768
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

/* Properties of an attribute: bits of adj_attr.flags. */
typedef enum {
    ADJ_ATTR_ANY_NUMBER = 1, /* any number is valid, NaN included */
    ADJ_ATTR_HIDE_ZERO = 2,  /* not printed if 0 */
    ADJ_ATTR_OF_RESULT = 4   /* a dtype or shape: the result's */
} adj_attr_flags;

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
    /* Default on the command line: fallback, or what fallback_of computes from the shape of operand
     * 0, axis by axis for lists. */
    double fallback;
    double (*fallback_of)(adj_shape x, adj_format format, int axis); /* NULL: fallback */
    unsigned flags;                                                  /* adj_attr_flags */
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

/* An op: constant facts and functions. Its version is an argument of adj_node_new_with. */
struct adj_op {
    const char *name;         /* name in listings and on command lines, such as "conv2d" */
    int n_in;                 /* number of operands; ADJ_MANY: one or more */
    const adj_schema *schema; /* NULL: no attributes */
    unsigned flags;           /* adj_op_flags */
    unsigned linear_in;       /* ADJ_IN(i): linear in operand i */
    unsigned sum_in; /* jointly linear in these operands, like a sum; 0: linear in each of linear_in
                        separately, like a product */
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
    /* ADJ_IN(i): operand i is a batch of images in the attributes' data format; ADJ_IMAGE_RESULT:
     * so is the result. Image k of the result depends only on image k of these operands; a result
     * that is not a batch of images is a sum over images. Of the attributes only the geometry
     * (adj_schema.geom) may depend on the number of images. */
    unsigned images;
    /* Axes of the operand that is named "filter", a letter each: "hwco"; m for the multiplier of
     * depthwise. NULL: no filter. */
    const char *filter_axes;
    unsigned cancels_in; /* ADJ_IN(i): the result is a sum of terms, each linear in operand i, that
                            may cancel; for operands that are not in linear_in */
    /* Maps random values of operand i from [-1, 1) to the range where the op is defined and smooth
     * (x to low + (x + 1) / 2 * (high - low)). */
    void (*domain)(const adj_node *n, int i, int64_t count, double v[]);
    /* Returns the number of terms of the longest sum behind an element of the result, where flop
     * and the sizes of the operands underestimate it. */
    double (*sum_length)(const adj_node *n);
    /* Types of the operands of an example; all NONE: X for one operand, X and FILTER_OR_X for two.
     * For ADJ_MANY, an example has as many operands as are listed. */
    adj_example example[ADJ_NAMED_OPERANDS];
    /* The op that this one is a gradient of; both have the same attributes. */
    const adj_op *forward;
    /* The op that computes operand i in training, from this op's operands and attributes of the
     * same names. In `example`, COMPUTED_STATISTICS stands for the computed operand, STATISTICS for
     * an input. On the command line --attr OPERAND=1 selects the computed operand, 2 one computed
     * from other values, 0 an input. Gradient rules may depend on the op of such an operand. */
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
/* Returns the index of node in the list; -1 if it is not there. */
ADJ_API int adj_position(int n, const adj_node *const list[], const adj_node *node);
/* Returns the first index of operand among n's operands; -1 if it is not there. */
static inline int adj_operand_position(const adj_node *n, const adj_node *operand)
{
    return adj_position(n->n_in, (const adj_node *const *)n->in, operand);
}
/* Returns the only reader of n, or NULL if n has several readers or is a root. */
ADJ_API const adj_node *adj_only_user(const adj_node *n, const adj_uses *uses);
/* Returns the geometry of the node's windows, or NULL if it has none. */
ADJ_API const adj_conv_geom *adj_node_geom(const adj_node *n);
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
/* Checks that all operands have the same float type; else ADJ_EDTYPE. */
ADJ_API adj_status adj_check_same_dtype(const adj_node *n);
/* Checks that the first count operands have one float type and one shape, and sets *out to it. */
ADJ_API adj_status adj_check_same(const adj_node *n, int count, adj_type *out);
/* Checks that operand i has that type and shape. */
ADJ_API adj_status adj_check_operand(const adj_node *n, int i, adj_type want);
/* Sums x over broadcast axes to the given shape: the gradient of broadcasting. */
ADJ_API adj_node *adj_sum_to(adj_node *x, adj_shape shape);
/* Adds a fill of v's type and shape. */
ADJ_API adj_node *adj_fill_like(adj_node *v, double value);
/* ---- numbers ---- */

/* Returns element i of data. */
ADJ_API double adj_load(adj_dtype dtype, const void *data, int64_t i);
/* Sets element i of data to value, rounded once. */
ADJ_API void adj_store(adj_dtype dtype, void *data, int64_t i, double value);
/* ---- windows ---- */

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

/* ---- the ops ---- */

/* All built-in ops, NULL-terminated. */
ADJ_API extern const adj_op *const adj_ops[];

/* ---- executors ---- */

/* Options of an executor for checking and debugging ops and backends. Each costs time or memory;
 * all zero turns them off. Read by adj_exec_new. */
typedef struct adj_exec_debug {
    FILE *trace;      /* the graph is printed to this file after each pass */
    const char *impl; /* prefer candidates whose implementation name contains this text */
    int no_passes;    /* run the graph as built, without mixed precision and recompute */
    int no_fusion;    /* every node of the graph as built is a step of its own */
    int no_sharing;   /* every value has its own buffer; nothing is computed in place */
    int canaries; /* guard words around all buffers, checked after every step: adj_run fails with
                     ADJ_EBACKEND when a kernel has written out of bounds */
    const struct adj_exec_internal *internal; /* for the library's own code; NULL */
} adj_exec_debug;

#ifdef __cplusplus
}
#endif

#include "adjoint_backend.h"
#endif
