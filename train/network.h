/* network.h - a net's graph for one batch size, with its executor: for training, evaluation or
 * prediction. */
#ifndef TRAIN_NETWORK_H
#define TRAIN_NETWORK_H

#include "adjoint_fit.h"

/* Options of an executor, for all kinds of networks. */
typedef struct {
    adj_exec_opts exec;     /* without fetch and updates; tune_seconds 0: for any number of runs */
    const char *selection;  /* as in adj_exec_internal */
    const adj_ranks *ranks; /* NULL: this process alone */
    const char *inner;      /* a node that a prediction fetches, too; NULL: none */
    int gradient;           /* a prediction fetches the logits' gradient of the images, too */
} plan_opts;

typedef struct settings settings; /* settings of a training (trainer.h) */

typedef struct {
    adj_graph *graph;
    adj_node *images, *logits;
    adj_node *labels, *loss;      /* NULL: for prediction */
    adj_node *targets, *weights;  /* inputs of a net with its own loss, in place of labels; weights:
                                     by image, 0: padding */
    adj_node *other_labels, *mix; /* inputs of mixed batches, in training */
    adj_node *share;              /* weight of a shard in the step's loss; NULL: one shard */
    adj_node *lr;                 /* lr and updates: for training */
    adj_node *probabilities;      /* for prediction */
    adj_node *inner;              /* f32: the node or gradient of plan_opts; NULL: none */
    adj_node *upstream;           /* [batch, classes], of that gradient */
    adj_updates *updates;
    adj_node *loss_scale, *skipped; /* states of what follows the gradients; NULL: there is none */
    int frozen;                     /* parameters */
    adj_exec *exec;
    adj_shape shape; /* shape of a shard's images */
    int n_shard;     /* shards of this process */
    int64_t classes;
    float *scores;  /* logits, or probabilities: [n_shard, batch, classes] */
    float *losses;  /* [n_shard] */
    float *present; /* [batch]: room for weights */
} network;

typedef enum { FOR_TRAINING, FOR_EVALUATION, FOR_PREDICTION } network_kind;

/* Builds and plans a network; all sizes and classes of net are given. runs: expected number of
 * runs, 0: unknown. training: for FOR_TRAINING, else NULL. The caller closes n in every case. */
adj_status network_open(network *n, network_kind kind, const adj_net *net, int64_t batch,
                        int64_t runs, const plan_opts *plan, const settings *training,
                        adj_error *error);
void network_close(network *n);

/* Returns the status, of a call of n->exec; copies a failure's message to error. */
adj_status network_failed(const network *n, adj_status status, adj_error *error);
/* Returns the value of a scalar f32 state; 0 for NULL. */
double network_state(const network *n, const adj_node *state);

/* Inputs of a training step besides its batch. */
typedef struct {
    double lr;
    const float *share; /* [n_shard]: weight of each shard's loss, 1 on average */
} step_inputs;
/* Sets labels and targets from image first of b on, unless b is NULL, and *images to the buffer for
 * the images of the next run of n->exec. For one shard. */
adj_status network_open_batch(network *n, const adj_loader_batch *b, int64_t first, float **images,
                              adj_error *error);
/* Returns the node whose value scores have. */
adj_node *network_scores(const network *n);
/* Fills scores and losses after a run with that status, and returns the status. */
adj_status network_read(network *n, adj_status status, adj_error *error);
/* Runs a training step on a batch and fills scores and losses. */
adj_status network_run(network *n, const adj_loader_batch *b, const step_inputs *step,
                       adj_error *error);

/* Completes the net's size from its built-in model, else from the argument; classes from the
 * argument, else from the model. ADJ_EARG for an unknown model or an impossible size. */
adj_status net_complete(adj_net *net, adj_image_size size, int64_t classes, adj_error *error);
/* Returns the name of the loss, "softmax" without one; "own" for a function of the caller. */
const char *net_loss_name(const adj_net *net);
static inline const char *net_name(const adj_net *net)
{
    return net->name != NULL ? net->name : "net";
}

#endif
