/* range.h - train --lr auto: finds a learning rate by a range test. */
#ifndef CLI_RANGE_H
#define CLI_RANGE_H

#include <jansson.h>

#include "adjoint_fit.h"
#include "ops/nn/range_test.h"

/* Trains a separate net with the options, except the rate, on d in the order of the run's first
 * epochs. *lr is first the default rate, then the rate to train with, *t the curve. If the test
 * goes through the data more than once, the loss of images seen before says little about rates: *lr
 * is then at most the default and at least a tenth of it. CONTINUE, or an exit status after a
 * complaint. */
int find_rate(const adj_net *net, const adj_dataset *d, const adj_fit_opts *options,
              adj_range_test *t, double *lr);
void say_range(const adj_range_test *t, double lr);
/* Returns the result of the test for the log. */
json_t *json_range(const adj_range_test *t, double lr);

#endif
