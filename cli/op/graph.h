/* graph.h - the graph for adjoint compare and adjoint gradcheck: a training step of a model, its
 * inference, or one op with its gradients. */
#ifndef CLI_OP_GRAPH_H
#define CLI_OP_GRAPH_H

#include "adjoint_check.h"
#include "cli/model.h"
#include "line.h"

enum { MAX_ROOTS_OF_OP = 65, MAX_ROOTS = 8 * MAX_ROOTS_OF_OP };

typedef struct {
    const char *model;     /* NULL: the op */
    const char *optimizer; /* optimizer of the model; NULL: momentum */
    op_args op;            /* options of --op; its types apply to models as well */
    int no_gradients;      /* 1: no gradients of the op; a node may be a leaf */
    int64_t infer;         /* 1: the model's inference instead of its training step */
    const char *node;      /* only this node of the model and its operands: 3, %3 or a name that no
                              other node has; NULL: all */
    int64_t batch;         /* batch size of the model; 0: its default */
    const char *size;      /* image size of the model, "32" or "32x48"; NULL: its default */
    int sets;              /* 1: adds the op with other attributes, if none were given */
    int64_t neighbors;     /* number of extra shapes close to the given one */
} compared_opts;

/* Fills the table of options that set what is compared, which ends without a name.
 * has_default_model: 1: without --model and --op the command has a model, so that options of a
 * model need no --model. */
enum { COMPARED_OPTIONS = 5 + OP_OPTIONS };
void compared_options(compared_opts *o, int has_default_model, option to[COMPARED_OPTIONS + 1]);
/* Adds the options to a line that repeats the command; returns 0 if they do not fit. */
int compared_repeat(const compared_opts *o, char *line, size_t size);

typedef struct {
    model_graph m; /* model, or the graph and error of an op; labels NULL: none */
    int n_variant; /* number of variants */
    int n_root;
    adj_node *root[MAX_ROOTS]; /* the loss; the probabilities; or the op's result and gradients */
    int32_t *label;
} compared;

/* The caller frees c in every case; on failure its error has the reason, ADJ_EARG for a wrong
 * option. */
adj_status compared_open(compared *c, const compared_opts *o);
void compared_close(compared *c);
/* Sets what is computed in the options of a comparison. labels: memory of its values. */
void compared_compute(const compared *c, adj_leaf_value *labels, adj_compare_opts *o);

/* ---- variants of an op: other attributes, and shapes close to its own ---- */

/* Sets *out to the i-th set of options besides the op's example: shapes and matching attributes, in
 * the given type. Returns 0 past the last, or if more than the type was given. */
int op_attribute_set(const op_args *given, int i, op_args *out);

/* Writes options, which point into *l, for the i-th shape close to that of n, an op over leaves,
 * limited to the sizes that a check needs. Returns 0 past the last. */
int op_neighbor(const adj_node *n, int i, op_line *l);

/* Builds y's op over the i-th operands that its rewriting rules (adj_op.simplify) look at: a
 * constant or a multiple for one operand, or transposes for all. NULL past the last, or if the
 * graph fails. */
adj_node *op_behind(adj_node *y, int i);

/* True if a node can be made of the options. Call it first: a failure leaves the graph in error. */
int op_is_possible(const op_args *args);

#endif
