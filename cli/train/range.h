/* range.h - train --lr auto: a rate by a learning rate range test (adj_range_test). */
#ifndef CLI_RANGE_H
#define CLI_RANGE_H

#include <jansson.h>

#include "network.h"
#include "train.h"

/* Trains a network of its own, opened with the options, on d in the order of the run's first
 * epochs; order is room for d->n indices. *lr is the rate to train with, *t the curve. CONTINUE, or
 * an exit status after a complaint. */
int find_rate(const train_opts *o, const network_opts *options, const adj_dataset *d,
              int64_t *order, adj_range_test *t, double *lr);
void say_range(const adj_range_test *t, double lr);
/* For the log. */
json_t *json_range(const adj_range_test *t, double lr);

#endif
