/* network.h - a model, its loss and its executor, fed from a data set: for training or for
 * evaluation. */
#ifndef CLI_NETWORK_H
#define CLI_NETWORK_H

#include "adjoint_io.h"
#include "cli/model.h"

/* MNIST's files in the folder, or without one the drawn digits, which do not depend on --seed: runs
 * with different seeds can be compared. CONTINUE, or an exit status after a complaint. *d is to be
 * freed in every case. */
int open_data(const char *command, const char *folder, adj_dataset_part part, adj_dataset **d);
const char *data_name(const char *folder);

typedef struct {
    const char *model; /* its name */
    int64_t batch, classes, seed, threads;
    const char *backend;
    adj_precision precision;
    adj_math math;
    int tune; /* this and the file: as in adj_exec_opts */
    const char *tune_file;
    int recompute, profile;              /* profile: steps of the plan are timed */
    const adj_optimiser_opts *optimiser; /* NULL: evaluation */
} network_opts;

typedef struct {
    model_graph m;
    int64_t params; /* trainable elements */
    adj_exec *exec;
    adj_shape shape; /* of images */
    int64_t classes;
    float *x, *scores; /* the values of images and logits */
    int32_t *y;        /* of labels */
} network;

/* Sums over images that count. */
typedef struct {
    double loss;
    int64_t right, count;
} tally;

enum { EVAL_BATCH = 100 };

/* n is to be closed in every case; on failure its error says why. */
adj_status network_open(network *n, const network_opts *o);
void network_close(network *n);
/* What a training step adds to a batch. */
typedef struct {
    const int64_t *order; /* of the images in this epoch */
    double lr;
    int64_t shift;        /* images are moved by up to so many pixels */
    uint64_t seed, drawn; /* of the shifts; images drawn before this epoch */
} training_step;

/* Runs one batch, the one of the images from first on, and adds it to *t. s == NULL: evaluation. */
adj_status network_step(network *n, const adj_dataset *d, int64_t first, const training_step *s,
                        tally *t);
/* The whole data set in its own order. */
adj_status network_evaluate(network *n, const adj_dataset *d, tally *t);

static inline double mean_loss(tally t) { return t.count > 0 ? t.loss / (double)t.count : 0; }
static inline double accuracy(tally t)
{
    return t.count > 0 ? 100.0 * (double)t.right / (double)t.count : 0; /* per cent */
}

#endif
