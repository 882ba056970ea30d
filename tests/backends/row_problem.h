/* row_problem.h - a group of nodes that runs as one loop (direct/fused_pointwise/row_kernel.h), and
 * its reference as plain loops in double, for the tests of row kernels. */
#ifndef ROW_PROBLEM_H
#define ROW_PROBLEM_H

#include "graph/op.h"
#include "tests/harness.h"

/* Which nodes the group has, in the order in which one reads another. */
enum {
    NORM = 1,
    GRAD = 2,
    ADD = 4,
    RELU = 8,
    MASK = 16,
    SUM = 32,
    SUMS = 64,
    MORE = 128,
    NORM_MASK = 256,
    CAST = 512,     /* to f32, before the sum; of bf16 alone */
    NORM_OUT = 1024 /* with NORM_MASK and SUMS: relu of the norm is a result, as recomputed */
};

/* Patterns that have a row kernel. */
extern const int row_patterns[], n_row_pattern;

static const double epsilon = 0x1p-10;

typedef struct {
    fixture f;
    int bits; /* 0: nodes of the test's own, which need not be one kernel */
    int64_t pixels, c;
    adj_node *a, *b, *mask, *x[2], *stats, *gamma, *beta, *sums;
    int n;
    adj_node *out[4];
    double *got[4]; /* out's values, once it has run */
} row_problem;

row_problem row_problem_new(int bits, adj_dtype dtype, int64_t pixels, int64_t c);
void row_problem_free(row_problem *s);

/* An input's values, as the kernel sees them; the caller may write others. */
double *row_input(const row_problem *s, const adj_node *n);
void row_fill(row_problem *s, const adj_node *n, double v);

/* Plans s->out on direct, whose group of s->bits must be one kernel, and runs that once; returns
 * how many of its steps compute so many nodes. */
int row_run_steps(row_problem *s, int threads, int nodes);
void row_run(row_problem *s, int threads);

/* Element i of batch_norm of x[0]. */
double row_wanted_norm(const row_problem *s, int64_t i);
/* s->got has the rounding that s->bits describe; sums are compared with sums of the results. */
void expect_row_values(const row_problem *s);

#endif
