/* checkpoint.h - a training run in a file: what it takes to go on as if nothing had happened.
 *
 * A safetensors file. Its tensors are the parameters and states of the training executor (weights,
 * the optimiser's state, running statistics, step counters); its metadata are the settings, the
 * position, and checksums of the data and of the order of the images. All random numbers come from
 * counters, so seed and position are the whole random state. */
#ifndef CLI_CHECKPOINT_H
#define CLI_CHECKPOINT_H

#include "network.h"
#include "train.h"

typedef struct {
    int64_t epoch, step; /* epochs that are done; steps of the one after them that are done */
    tally sum;           /* over those steps */
    int64_t best_epoch;  /* counted from 1; 0: none yet */
    double best;         /* its test accuracy */
} position;

/* What the file is about besides the network. */
typedef struct {
    const train_opts *o;
    const adj_dataset *train;
    uint64_t data_sum; /* data_checksum of train */
    int64_t steps;     /* of one epoch */
    int64_t *order;    /* train->n of them: the checkpoint's epoch's on return */
} checkpoint_of;

uint64_t data_checksum(const adj_dataset *d);

adj_status checkpoint_save(const checkpoint_of *c, const network *n, const position *p,
                           adj_error *error);

/* These print what is wrong. CONTINUE or an exit status. */

/* Reads o->checkpoint and gives o the settings that it leaves unset; the others must agree, but the
 * number of threads, of which another one is reported. *file, to which o then points, is to be
 * freed in every case. */
int checkpoint_open(train_opts *o, adj_tensors **file);
/* Gives n and *p what the file says. */
int checkpoint_restore(const adj_tensors *file, const checkpoint_of *c, network *n, position *p);

#endif
