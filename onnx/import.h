/* import.h - declarations shared by the files of onnx/ that import: numbers, values, nodes.
 *
 * A value of the file is one of three things: a node of the graph; numbers known while loading
 * (initializers, constants, and shapes computed from them); or unknown, if the node that computes
 * it is not supported. All memory except the parameters' values belongs to the import. */
#ifndef ONNX_IMPORT_H
#define ONNX_IMPORT_H

#include "adjoint_onnx.h"
#include "ops/grad.h"
#include "shared.h"
#include <onnx.pb-c.h>

/* Short names of element types. */
enum {
    ELEM_FLOAT = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT,
    ELEM_DOUBLE = ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE,
    ELEM_INT64 = ONNX__TENSOR_PROTO__DATA_TYPE__INT64,
    ELEM_INT32 = ONNX__TENSOR_PROTO__DATA_TYPE__INT32,
    ELEM_BOOL = ONNX__TENSOR_PROTO__DATA_TYPE__BOOL
};

/* Numbers known while loading. Integers and truth values stand in i, all others in f. */
typedef struct {
    int elem;        /* type in the file */
    adj_dtype dtype; /* to which computed floats are rounded: f64 for float when computing in f64 */
    adj_shape shape;
    int64_t n; /* number of elements */
    double *f;
    int64_t *i;
} numbers;

/* A value of the file. */
typedef struct {
    const char *name;
    int elem;             /* type in the file */
    const numbers *known; /* NULL: not known while loading */
    int is_weight;        /* 1: a float initializer that can be trained */
    int is_initial;       /* 1: a float initializer that can be a parameter or a state */
    int is_listed;        /* 1: PyTorch's newer exporter names it */
    adj_node *next;       /* next value of running statistics in training; NULL: none */
    int is_random;        /* 1: the weights of a new last layer */
    const Onnx__NodeProto *copied_by; /* NULL, or the Identity that gives it initial values */
    int is_rebatched; /* 1: computed from an input of another batch than the file's */
    int is_merged;    /* 1: has more than ADJ_MAX_RANK axes in the file; the last ones are one */
    adj_node *node;   /* NULL: none yet */
    adj_node **part;  /* a sequence's elements, n_part of them; NULL: no sequence */
    int64_t n_part;
} value;

enum {
    MAX_REASON = 240,
    MAX_COMPUTED =
        1 << 24 /* elements of a tensor that no file holds: a few bytes may ask for any */
};

typedef struct import import;
typedef struct operator_row operator_row;

/* A node of the file while it is imported. */
typedef struct {
    import *f;
    const Onnx__NodeProto *proto;
    const operator_row *row;
    int64_t opset; /* version of the operator's domain */
    int n_in, n_out;
    int is_rebatched; /* 1: an operand is computed from an input of another batch than the file's */
    int has_merged;   /* 1: an operand has more than ADJ_MAX_RANK axes */
    int is_foldable;  /* 1: all operands are known while loading, and none is trained */
    value **in;       /* NULL: an operand left out */
    value *out;       /* [n_out], results, to be filled in */
    char reason[MAX_REASON]; /* why it is not supported; "" */
} call;

/* State of an import. */
struct import {
    adj_graph *g;
    const adj_onnx_opts *o;
    const char *path;
    char *folder; /* folder of the model, with a final slash */
    const Onnx__ModelProto *model;
    int64_t opset; /* version of ONNX's own operators */
    adj_error *error;
    adj_status status;
    struct chunk *memory;
    value *value; /* hash table, n_bucket of which n_value are used */
    int n_value, n_bucket;
    int64_t file_batch; /* size of the first input's first axis in the file; 0: symbolic */
    int n_given;        /* inputs that the caller has given so far */
    value *head[2];     /* weights and bias of a new last layer, n_head of them */
    int n_head;
    adj_node **param; /* parameters and states: at most one for each value */
    int n_param;
    value **moved; /* running statistics that the nodes so far update, n_moved of them */
    int n_moved;
    int n_folded; /* batch norms that the newer exporter names and the file lacks */
    int n_refused;
    char refused[ADJ_MESSAGE];
};

/* Returns zeroed memory that lives as long as the import; NULL when out of memory, which the
 * import's status then says. */
void *import_alloc(import *f, int64_t count, size_t size);
/* Sets status and message of the import, unless it has failed before. Returns 0. */
int import_fail(import *f, adj_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Refuses a node: it is not supported because of the reason. Returns 0. */
int refuse(call *n, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- read.c ---- */

/* Reads and unpacks a file; NULL on failure. */
Onnx__ModelProto *read_model(import *f);

/* ---- numbers.c ---- */

int elem_is_float(int elem);
/* True for integers and truth values. */
int elem_is_integer(int elem);
const char *elem_name(int elem);
/* Sets the least and the largest integer of 8 or 16 bits; returns 0 for other types. */
int elem_limits(int elem, double *low, double *high);
/* Returns numbers of that type and shape, up to MAX_COMPUTED, all 0; NULL on failure. */
numbers *new_numbers(import *f, int elem, adj_shape shape);
/* Converts a tensor of the file; NULL on failure. */
const numbers *read_tensor(import *f, const Onnx__TensorProto *t);
/* Converts a tensor of the caller. */
const numbers *known_tensor(import *f, const adj_tensor *t);
/* Returns element i of any type. */
double number_at(const numbers *v, int64_t i);
/* Returns element i as its type in the file holds it. A size is rounded to a whole number from
 * there, so that it does not depend on the type of the computation. */
double number_in_file(const numbers *v, int64_t i);
/* Sets element i, rounded to the type. */
void number_set(numbers *v, int64_t i, double to);
/* Returns the type in which values of this type are computed. */
adj_dtype dtype_of_elem(const import *f, int elem);

/* ---- inputs.c ---- */

/* Adds the initializers and inputs. Returns 0 on failure. */
int add_values(import *f);
/* Adds the initializers of the graph or of a branch. Returns 0 on failure. */
int add_initializers(import *f, const Onnx__GraphProto *g);
/* Returns the tensor that the caller gives for the input of that name, or NULL. */
const adj_tensor *known_input(const import *f, const char *name);
/* Gives the last layer weights and a bias for options.classes, if that is not 0. Returns 0 on
 * failure. */
int replace_head(import *f);

/* ---- origin.c ---- */

/* Gives nodes parameters of their own, where equal ones are stored once. Returns 0 on failure. */
int name_parameters(import *f);

/* ---- load.c ---- */

/* Imports the nodes of the graph or of a branch. Returns 0 on failure. */
int import_nodes(import *f, const Onnx__GraphProto *g);

/* ---- value.c ---- */

/* Returns the value of that name, or NULL if there is none. */
value *find_value(import *f, const char *name);
/* Adds a value; NULL when the name is in use or out of memory. */
value *add_value(import *f, const char *name);

/* True if operand i is given. */
int has_in(const call *n, int i);
/* Returns operand i as a node: that of the graph, a parameter or a constant. NULL on failure. */
adj_node *in_node(call *n, int i);
/* True if operand 1 begins at an axis of operand 0 that is named, as before opset 7. */
int has_own_axis(const call *n);
/* Returns operand i as a node that can be broadcast to operand 0. */
adj_node *in_beside(call *n, int i);
/* Returns operand i as a node of floats: integers in double. */
adj_node *in_real(call *n, int i);
/* Returns operand i as a node, as a state if it is an initializer. */
adj_node *in_state(call *n, int i);
/* Returns operand i with its axes permuted; an initializer becomes a parameter of that shape. */
adj_node *in_permuted(call *n, int i, const int perm[]);
/* Returns the numbers of operand i, or NULL, having refused the node, if they are not known. */
const numbers *in_known(call *n, int i);
/* Returns the shape of operand i; rank 0 if it is left out. */
adj_shape in_shape(const call *n, int i);
/* True if all numbers are equal, zeros with their signs. */
int are_equal(const numbers *v);
/* Adds a constant of the numbers, in type dtype. */
adj_node *const_node(import *f, const numbers *v, adj_dtype dtype);
/* Makes y the first result. Returns 0 if y is NULL. */
int give(call *n, adj_node *y);
int give_at(call *n, int i, adj_node *y, int elem);
/* Makes y, of operand 0 by in_real, the first result in operand 0's type. */
int give_like(call *n, adj_node *y);
int give_known(call *n, const numbers *v);
int give_int(call *n, int64_t i);

/* ---- helpers.c ---- */

/* True if a node of the file has that operator. */
int is_op(const Onnx__NodeProto *n, const char *op);
/* True if the weights of a layer, which has that operator, begin with the axis of its results. */
int has_results_first(const Onnx__NodeProto *n);
/* Returns the value of the first entry with that key; NULL if there is none. */
const char *entry_of(size_t n, Onnx__StringStringEntryProto *const entry[], const char *key);
const Onnx__AttributeProto *attribute(const call *n, const char *name);
int64_t attr_int(const call *n, const char *name, int64_t otherwise);
/* Returns the number that a float of the file means: when computing in double the decimal fraction
 * of up to 6 digits, inverse or root of a small integer that it was rounded from. */
double meant_by(const import *f, float v);
double attr_float(const call *n, const char *name, double otherwise);
/* True if the attribute, or `otherwise` if it is missing, is this text. */
int attr_is(const call *n, const char *name, const char *text, const char *otherwise);
/* Returns the text of the attribute, or otherwise; cut off after 31 characters. */
typedef struct {
    char s[32];
} word;
word attr_word(const call *n, const char *name, const char *otherwise);
/* Returns the number of integers of the attribute, and the integers; -1 without the attribute. */
int attr_ints(const call *n, const char *name, const int64_t **list);
/* Sets *list to integers given as an attribute or as operand i. Returns their number; -1 if they
 * are not given, -2 having refused the node. */
int int_list(call *n, const char *name, int i, const int64_t **list);

adj_shape shape_of(const adj_node *x);
/* Returns x in that shape; x itself if it has it. */
adj_node *broadcast(adj_node *x, adj_shape s);
/* Returns an axis counted from the front; -1, having refused the node, if there is none. */
int axis_of(call *n, int64_t axis, int64_t rank);
/* Sets *to to the shape to which both are broadcast. Returns 0, having refused the node, if they
 * cannot be. */
int joint_shape(call *n, const adj_shape *a, const adj_shape *b, adj_shape *to);
/* Sets perm to the identity with an axis and the last one exchanged: its own inverse. */
void swap_with_last(int rank, int axis, int perm[]);
/* x with its axes permuted: x itself for the identity, x's operand where that undoes a transpose.
 */
adj_node *permute(adj_node *x, const int perm[]);
/* Elements begin, begin + step, ... (count of them) along an axis. */
adj_node *strided(adj_node *x, int axis, int64_t begin, int64_t count, int64_t step);
/* Elements begin .. begin + size - 1 along an axis. */
adj_node *slice_axis(adj_node *x, int axis, int64_t begin, int64_t size);
/* The elements of the given numbers along an axis; NULL if there are too many runs of them. */
adj_node *pick(adj_node *x, int axis, int64_t count, const int64_t index[]);
/* Applies a function of the last axis to `axis`. */
adj_node *along(adj_node *x, int axis, adj_node *(*function)(adj_node *x));
int64_t clamp(int64_t v, int64_t low, int64_t high);
/* x padded by a value along an axis. */
adj_node *pad_axis(adj_node *x, int axis, int64_t before, int64_t after, double with);

/* ---- operators (table.c) ---- */

/* Operations on known operands, from left to right. */
typedef enum {
    FOLD_NONE,
    FOLD_ADD,
    FOLD_SUB,
    FOLD_MUL,
    FOLD_DIV,
    FOLD_MOD,
    FOLD_POW,
    FOLD_MIN,
    FOLD_MAX,
    FOLD_EQUAL, /* this and the next give truth values */
    FOLD_LESS,
    FOLD_LESS_EQUAL,
    FOLD_GREATER,
    FOLD_GREATER_EQUAL,
    FOLD_AND,
    FOLD_OR,
    FOLD_XOR
} operation;

typedef int import_fn(call *n);
typedef int shape_fn(call *n, adj_shape *to);
/* Row of the table of operators. One of build, unary and binary adds nodes; build may call the
 * row's other functions. One of fold, operation and each computes results of known operands while
 * loading. */
struct operator_row {
    const char *name;
    const adj_op *op; /* written as this operator; NULL: none is */
    import_fn *build;
    adj_node *(*unary)(adj_node *x);               /* a builder of one operand */
    adj_node *(*binary)(adj_node *a, adj_node *b); /* a left fold of two or more operands */
    adj_node *(*reduce)(adj_node *x, adj_axes axes), *(*after)(adj_node *x);
    double of_none;  /* the reduction of no elements */
    shape_fn *shape; /* computes the new shape of a reshape */
    import_fn *fold;
    double (*each)(double x); /* computes each element */
    operation operation;
    int is_whole;     /* 1: `each` rounds to whole numbers */
    int since;        /* the first opset in which it is as here; 0: it was always */
    int takes_merged; /* 1: its results are the same for operands whose last axes are one */
};
/* Returns the row of that operator, or NULL. */
const operator_row *find_operator(const char *name);

import_fn import_leaky_relu, import_elu, import_celu, import_selu, import_hard_sigmoid,
    import_thresholded_relu, import_swish, import_gelu, import_prelu, import_clip, fold_clip,
    import_softmax;
import_fn import_reshape, import_transpose, import_expand, import_tile, import_concat, import_split,
    import_depth_to_space, import_space_to_depth;
import_fn import_conv, import_conv_transpose;
import_fn import_mean, import_pow, import_comparison, import_shrink, import_logic, import_not,
    import_where, import_cast, import_identity, import_if;
import_fn fold_constant, import_shape, import_size, fold_constant_of_shape, fold_range, fold_cast,
    fold_reshape, fold_concat, fold_gather, fold_slice, fold_transpose, fold_expand, fold_where,
    fold_reduce_prod;
import_fn import_gemm, import_matmul;
import_fn import_batch_norm, import_group_norm, import_instance_norm, import_layer_norm, import_lrn,
    import_dropout;
import_fn import_max_pool, import_average_pool, import_lp_pool, import_global_average_pool,
    import_global_max_pool, import_global_lp_pool;
import_fn import_quantize, import_dequantize;
import_fn import_reduce, import_arg_max, import_nll_loss, import_softmax_cross_entropy;
import_fn import_resize, import_upsample;
import_fn import_split_to_sequence, import_sequence_construct, import_sequence_empty,
    import_sequence_insert, import_sequence_at, import_concat_from_sequence;
import_fn import_slice, import_gather, import_gather_nd, import_pad;
int fold_all(call *n, operation o);
/* Applies a function to each element of a known operand. */
int fold_each(call *n, double (*function)(double x));

/* Shapes of Reshape, Flatten, Squeeze, Unsqueeze and Expand; ranges of Slice, for each axis. Return
 * 0 having refused. */
shape_fn reshaped_shape, flattened_shape, squeezed_shape, unsqueezed_shape, expanded_shape;
int read_slice(call *n, int64_t begin[], int64_t count[], int64_t step[]);
/* The elements along an axis that Gather takes, and its result's shape. */
typedef struct {
    int axis;
    int64_t n;
    const int64_t *index;
    adj_shape shape;
} gathered;
int read_gather(call *n, gathered *to); /* returns 0 having refused */
/* Sets *to to a shape given as numbers. Returns 0 having refused. */
int shape_from(call *n, const numbers *list, adj_shape *to);
/* Reads perm, the reverse of the axes by default. Returns 0 having refused. */
int read_perm(call *n, int perm[]);

/* 1 where a > b, a < b, a <= b or a != b, else 0. Beside a NaN, different is 1 and the others are
 * 0. */
adj_node *greater(adj_node *a, adj_node *b), *less(adj_node *a, adj_node *b);
adj_node *less_or_equal(adj_node *a, adj_node *b), *different(adj_node *a, adj_node *b);
/* a b; the product of x and sigmoid(x), as exporters write silu, is one node. */
adj_node *product_or_silu(adj_node *a, adj_node *b);
adj_node *softsign(adj_node *x), *mish(adj_node *x), *reciprocal(adj_node *x),
    *sign_of(adj_node *x);
adj_node *log_sum_exp(adj_node *x, adj_axes axes);
double minus(double x), is_zero(double x), sign(double x);

/* ---- conv.c ---- */

/* Windows of convolutions and pools along depth, height and width. One spatial axis is the width,
 * two are height and width. */
typedef struct {
    int spatial;   /* number of spatial axes in the file: 1 to 3; the others have size 1 */
    int64_t in[3]; /* sizes of depth, height, width */
    int64_t kernel[3], stride[3], dilation[3];
    int64_t pad[6];     /* front, top, left, back, bottom, right */
    int64_t counted[6]; /* padding whose elements an average counts */
} windows;

/* Reads kernel_shape (or the filter's, if it is not NULL), strides, dilations and pads. Sizes are
 * below 2^31, so that sums and products of two of them fit. Returns 0 having refused the node. */
int read_windows(call *n, const adj_shape *filter, windows *w);
/* Reads a list with an entry of at least `least` for each spatial axis; to[] keeps its values
 * without the attribute. Returns 0 having refused the node. */
int read_list(call *n, const char *name, int spatial, int64_t least, int64_t to[3]);
/* Number of elements from the first to the last one of a window. */
int64_t reach_of(const windows *w, int i);
/* Number of results along an axis. */
int64_t results_along(const windows *w, int i);
/* Sets the pads of height and width, in NCHW; returns how to pad. */
adj_padding padding_of(const windows *w, int64_t pad[4][2]);
/* The windows along the depth alone, as ones along the height. */
windows along_depth(const windows *w);
/* x [n, c, w] as [n, c, 1, w], and x [n, c, d, h, w] as [n, c d, h, w]; images stay. */
adj_node *as_images(adj_node *x);
/* The reverse, for an operator of one or two spatial axes. */
adj_node *from_images(adj_node *y, int spatial);

#endif
