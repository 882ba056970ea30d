/* range_test.h - a learning-rate range test. */
#ifndef NN_RANGE_TEST_H
#define NN_RANGE_TEST_H

#include "adjoint_nn.h"

/* Maximum number of steps of a test. */
enum { ADJ_RANGE_STEPS = 300 };
/* A test's curve, all zero at first. An executor that is used for nothing else is trained with
 * rising rates, and its parameters are thrown away:
 *     adj_range_test t = {0};
 *     do
 *         loss = train_step(adj_range_test_rate(&t));
 *     while (adj_range_test_add(&t, loss));
 *     lr = adj_range_test_choose(&t); */
typedef struct {
    int n;                          /* steps done: number of entries of the arrays */
    double lr[ADJ_RANGE_STEPS];     /* rate of each step */
    double loss[ADJ_RANGE_STEPS];   /* loss of each step */
    double smooth[ADJ_RANGE_STEPS]; /* moving average of the loss */
} adj_range_test;

/* Returns the rate of the next step, which grows exponentially from 1e-6 to 10. */
ADJ_API double adj_range_test_rate(const adj_range_test *t);
/* Records the loss of a step. Returns 0 after the last step: ADJ_RANGE_STEPS are done, the loss is
 * not finite, or its moving average is more than four times the smallest one. */
ADJ_API int adj_range_test_add(adj_range_test *t, double loss);
/* Returns the rate to train with, a tenth of the rate with the smallest moving average (fastai's
 * choice); 0 if the loss never fell. */
ADJ_API double adj_range_test_choose(const adj_range_test *t);

#endif
