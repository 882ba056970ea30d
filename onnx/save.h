/* save.h - declarations shared by the files of onnx/ that export: the graph under construction, and
 * the names of values.
 *
 * ONNX images are NCHW. An NHWC image of adjoint has one or both of two forms in the file: plain,
 * in NHWC, and turned, in NCHW. Each operator uses the form that it needs; a Transpose is written
 * where only the other form exists. */
#ifndef ONNX_SAVE_H
#define ONNX_SAVE_H

#include "adjoint_onnx.h"
#include "graph/op.h"
#include <onnx.pb-c.h>

/* Names of a value in the file; NULL: not written in this form. */
typedef struct {
    const char *plain, *turned;
    int64_t outer; /* number of elements that precede the batch (save_shapes.c); 0: no batch */
    int readers;   /* number of times that it is read by what is written */
    int is_folded; /* 1: a batch norm or bias that is written with the layer before */
} saved;

typedef struct {
    adj_exec *e;
    const adj_graph *g;
    int64_t batch; /* sizes of first axes that are symbolic in the file; 0: none are */
    adj_error *error;
    adj_status status;
    struct chunk *memory;
    saved *of;  /* by node id */
    int n_made; /* names made so far */
    Onnx__GraphProto graph;
    size_t max_node, max_initializer;
    Onnx__AttributeProto dropped; /* attribute of no node, after a failure */
} writer;

/* After a failure all functions may be called: what they write is dropped. */
void *writer_alloc(writer *w, int64_t count, size_t size);
/* Sets status and message, unless writing has failed before. */
void writer_fail(writer *w, adj_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Fails because a node has no form in ONNX. */
void cannot_save(writer *w, const adj_node *n, const char *why);

static inline adj_shape dims(const adj_node *n) { return adj_node_type(n).shape; }
/* Returns an axis of NHWC as an axis of the same images as NCHW. */
static inline int64_t turned_axis(int64_t axis) { return axis == 0 ? 0 : axis == 3 ? 1 : axis + 1; }

/* Returns an empty message of that kind. */
void *new_message(writer *w, const ProtobufCMessageDescriptor *kind);

/* ---- names ---- */

/* Returns a new name that no value of the graph has. */
const char *fresh_name(writer *w);
/* Returns the name of a value in that form, having written what it takes; NULL on failure. */
const char *plain(writer *w, const adj_node *n);
const char *turned(writer *w, const adj_node *n);
const char *in_form(writer *w, const adj_node *n, int is_turned);
/* True if the value, an image, stands in the file as NCHW only. */
int is_turned(const writer *w, const adj_node *n);
/* Names the value of n in that form, to be the result of an operator. */
const char *result(writer *w, const adj_node *n, int is_turned);

/* ---- operators and constants ---- */

/* Writes an operator with up to four operands, NULL for none after the last, and returns it. */
Onnx__NodeProto *emit(writer *w, const char *op, const char *const in[], const char *out);
Onnx__NodeProto *emit1(writer *w, const char *op, const char *a, const char *out);
Onnx__NodeProto *emit2(writer *w, const char *op, const char *a, const char *b, const char *out);
void set_int(writer *w, Onnx__NodeProto *n, const char *name, int64_t value);
void set_float(writer *w, Onnx__NodeProto *n, const char *name, double value);
void set_ints(writer *w, Onnx__NodeProto *n, const char *name, int count, const int64_t list[]);
void set_word(writer *w, Onnx__NodeProto *n, const char *name, const char *word);
/* Writes a list of integers as an initializer and returns its name. */
const char *ints(writer *w, int count, const int64_t list[]);
/* Writes a number of x's element type as an initializer and returns its name. */
const char *number(writer *w, const adj_node *x, double value);
/* Initializers: an integer; two scales behind two ones, for Resize; every step-th number of a list,
 * of x's element type. */
const char *ints_scalar(writer *w, int64_t value);
const char *factors(writer *w, double height, double width);
const char *listed(writer *w, const adj_node *x, adj_shape shape, const double list[], int step);
/* Returns the leaf or fill whose elements n has, reshaped or not; NULL if n is computed in a run.
 */
const adj_node *stored(const adj_node *n);
/* Returns the value of stored(n); NULL if there is none, or on failure. */
const void *value_of(writer *w, const adj_node *n);
/* Returns the name of n's value with its axes permuted and then in another shape: an initializer
 * where n is a parameter, else the result of Transpose and Reshape. */
const char *arranged(writer *w, const adj_node *n, const int perm[], adj_shape shape);
/* Writes row i of a state as an initializer "NAME_part", unless it is there, and returns its name.
 */
const char *state_row(writer *w, const adj_node *n, int64_t i, const char *part);

/* Returns the operator that the op is written as, or NULL if it takes several (table.c). */
const char *operator_of(const adj_op *op);

/* ---- save_ops.c ---- */

/* Writes the operators that compute n. */
void save_node(writer *w, const adj_node *n);
/* Lists the nodes whose values save_node(n) reads, up to two more than n has operands. Returns how
 * many. */
int list_needed(const writer *w, const adj_node *n, const adj_node *needed[]);

/* ---- save_shapes.c ---- */

/* Sets saved.outer of all nodes. */
void find_batch(writer *w);
/* Returns the axis of n's value of which the batch is a factor; -1 if there is none. */
int batch_axis(const writer *w, const adj_node *n);
/* Fails if an operand of n, whose shapes broadcast, allows one batch only. */
void check_batch(writer *w, const adj_node *n);
/* Returns n's sizes, that with the batch as -1. */
const char *sizes(writer *w, const adj_node *n);
/* Returns sizes for n of which the first, if it has the batch, is computed from an input. */
const char *batch_sizes(writer *w, const adj_node *n, adj_shape s);

typedef void save_fn(writer *w, const adj_node *n);
save_fn save_reshape, save_transpose, save_concat, save_pad, save_slice, save_broadcast;

/* ---- save_layers.c ---- */

save_fn save_conv, save_bias_add, save_matmul, save_batch_norm, save_group_norm;
/* True if n has the products of a batch, rows [m, n] one after the other, of the operands
 * of[0] [batch, m, k] and of[1] [batch, k, n]. */
int products_of(const adj_node *n, const adj_node *of[2]);
/* Writes the attributes of windows. */
void set_windows(writer *w, Onnx__NodeProto *p, const adj_conv_geom *g, int has_dilations);
/* Returns what computes a batch norm's operand, and the bias between them, NULL without one. */
const adj_node *layer_before(const adj_node *n, const adj_node **bias);
/* True if n is a batch norm that a layer's weights and bias can hold: alone it reads the layer. */
int can_fold(writer *w, const adj_node *n);
/* True if n adds a stored bias to a convolution that it alone reads. */
int can_join(writer *w, const adj_node *n);

#endif
