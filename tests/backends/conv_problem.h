/* conv_problem.h - a convolution of small integers and what its three directions must give, bit for
 * bit, for the tests of direct kernels. */
#ifndef CONV_PROBLEM_H
#define CONV_PROBLEM_H

#include "tests/backends/candidates.h"
#include "tests/oracle.h"

typedef struct { /* arrays: by enum oracle_result */
    fixture f;
    adj_node *result[3];
    double *want[3]; /* rounded to the type */
    int64_t n[3];
    char text[200];
} conv_problem;

conv_problem conv_problem_new(oracle_conv row, adj_dtype dtype);
void conv_problem_free(conv_problem *p);
/* The direct backend for one instruction set. */
test_backend direct_open_isa(const char *isa, int threads);
/* All candidates of t for a direction, whose names must contain isa; returns how many there are. */
int expect_exact(conv_problem *p, const test_backend *t, int direction, const char *isa);
/* The direct backend's first candidate for y gives the same bits on one thread and on up to eight.
 */
void expect_same_bits_for_any_threads(fixture *f, const adj_node *y, const char *isa);

#endif
