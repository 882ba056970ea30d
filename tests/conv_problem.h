/* conv_problem.h - a convolution and its two adjoints over known inputs, for the tests of the op
 * and of its kernels. */
#ifndef CONV_PROBLEM_H
#define CONV_PROBLEM_H

#include "tests/harness.h"
#include "tests/oracle.h"

typedef enum {
    INTEGERS, /* -3 to 3, filters -2 to 2: sums are exact */
    REALS,    /* -1 to 1 */
    POSITIVE, /* 0 to 1: sums as large as their terms allow */
} conv_fill;

typedef struct { /* arrays: by enum oracle_result */
    fixture f;   /* its inputs: x, w, dy */
    oracle_sizes s;
    adj_node *result[3];
    int64_t n[3];
    double *want[3]; /* rounded to the dtype; NULL without conv_problem_solve */
    char text[200];
} conv_problem;

/* lo to hi; the same for the same counter, which goes on. */
int draw(uint32_t *counter, int lo, int hi);
/* Sizes of 1 to those of most (0: not drawn), in the order of the struct; no padding. */
oracle_conv draw_sizes(const oracle_conv *most, uint32_t *counter);
/* SAME, or EXPLICIT with room for the kernel. */
void draw_padding(oracle_conv *a, uint32_t *counter);

conv_problem conv_problem_new(oracle_conv row, adj_dtype dtype, conv_fill fill);
/* Fills want by the slow reference. */
void conv_problem_solve(conv_problem *p);
void conv_problem_free(conv_problem *p);
/* Returns a result's elements by the slow reference, not rounded; the caller frees. */
double *conv_problem_exact(const conv_problem *p, int result);

#endif
