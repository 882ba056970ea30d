/* results.h - gathers the report of a training from its metrics, trainer and data. */
#ifndef CLI_TRAIN_RESULTS_H
#define CLI_TRAIN_RESULTS_H

#include "adjoint_fit.h"

typedef struct {
    adj_trainer *trainer;
    const adj_dataset *held_out;
    const char *held_out_name; /* split of held_out: "test" or "validation" */
    const char *metrics;       /* the file metrics.jsonl */
} results_of;

/* Writes the report, replacing the file. */
adj_status results_write(const results_of *r, const char *path, adj_error *error);

#endif
