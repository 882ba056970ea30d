/* results.h - what a training leaves to look at: gathers the report from its trainer and
 * data. */
#ifndef CLI_TRAIN_RESULTS_H
#define CLI_TRAIN_RESULTS_H

#include "adjoint_fit.h"
#include "history.h"
#include "train.h"

typedef struct {
    const train_opts *o;
    const adj_dataset *train, *held_out;
    const char *held_out_name; /* what held_out is: "test" or "validation" */
    adj_trainer *trainer;
    const history *history;
    int argc; /* the command line */
    char **argv;
    int64_t best_epoch;   /* 0: none */
    double best, seconds; /* best: per cent */
    int interrupted;
} results_of;

/* Replaces the file. */
adj_status results_write(const results_of *r, const char *path, adj_error *error);

#endif
