/* graph.h - the graph for adjoint compare and adjoint gradcheck: a training step of a model, its
 * inference, or one op with its gradients. */
#ifndef CLI_OP_GRAPH_H
#define CLI_OP_GRAPH_H

#include "adjoint_check.h"
#include "args.h"
#include "cli/model.h"

enum { MAX_ROOTS_OF_OP = 65, MAX_ROOTS = 8 * MAX_ROOTS_OF_OP };

typedef struct {
    const char *model;     /* NULL: the op */
    const char *optimizer; /* of the model; NULL: momentum */
    op_args op;            /* its types are the model's, too */
    int no_gradients;      /* of the op; a node may be a leaf */
    int64_t infer;         /* the model as predict runs it, not its training step */
    int64_t node;          /* of the model: no more than this one needs; negative: all */
    int64_t batch;         /* of the model; 0: its own */
    const char *size;      /* of its images, "32" or "32x48"; NULL: its own */
    int sets;              /* the op with other attributes, too, if none were given */
    int64_t neighbors;     /* and with as many shapes around its own */
} compared_opts;

typedef struct {
    model_graph m; /* of an op: its graph and the error; labels NULL: none */
    int n_variant; /* sets and neighbors that there are */
    int n_root;
    adj_node *root[MAX_ROOTS]; /* the loss; the probabilities; or the op's result and gradients */
    int32_t *label;
    int usage; /* the failure is the caller's */
} compared;

/* c is to be freed in every case; on failure its error says why. */
adj_status compared_open(compared *c, const compared_opts *o);
void compared_close(compared *c);

#endif
