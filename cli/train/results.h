/* results.h - what a training leaves to look at: gathers the report from its networks and data. */
#ifndef CLI_TRAIN_RESULTS_H
#define CLI_TRAIN_RESULTS_H

#include "history.h"
#include "network.h"
#include "train.h"

typedef struct {
    const train_opts *o;
    const adj_dataset *train, *held;
    network *trained; /* its executor profiles; its parameters change */
    network *tested;  /* with the last parameters */
    const history *history;
    int argc; /* the command line */
    char **argv;
    int64_t best_epoch; /* 0: none */
    double best, seconds;
    int interrupted, ran; /* ran: a step was made in this process */
} results_of;

/* Replaces the file. */
adj_status results_write(const results_of *r, const char *path, adj_error *error);

#endif
