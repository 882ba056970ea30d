/* conv_rows.h - convolutions for the tests of the direct backend's kernels, and the checks that
 * every kernel must pass. */
#ifndef CONV_ROWS_H
#define CONV_ROWS_H

#include "tests/backends/candidates.h"
#include "tests/conv_problem.h"

/* Rows for kernels whose products are of tiles, 16 pixels by 16 channels: tails of blocks of
 * channels, odd and even ones, segments of less than a step, of some, and of some with a rest; rows
 * that fill tiles and that do not; several images in a chunk, several chunks in an image; strides
 * with and without taps in each phase; pads beyond the kernel, kernels beyond the image. */
extern const oracle_conv tile_cases[];
extern const int n_tile_case;
/* 432 terms in y, 360 in dx, 910 in dw. */
static const oracle_conv long_sums = {5, 13, 14, 48, 3, 3, 40, .padding = ADJ_SAME};

oracle_conv draw_tile_case(uint32_t *counter);
/* Where the counter of a test's random rows starts for an ISA: 0, 100000 or 200000 beyond first. */
uint32_t rows_from(uint32_t first, const char *isa);

/* ---- a kernel under test ---- */

typedef struct {
    const char *name;           /* NULL: the first that takes the nodes */
    const char *impl[2];        /* accepted names before ":" and the ISA; NULL: any */
    int is_only;                /* it has one candidate */
    const char *packed;         /* in its layouts if operands never change; NULL: not looked at */
    const adj_op *never_packed; /* but for this op */
    int first, last;            /* enum oracle_result: what it computes */
    int is_cast;                /* with a cast to f32 behind it */
    adj_math math;
} tested_kernel;

/* The result of k for the group node[0 .. n), malloc'ed; the same whether operands may change in
 * every run or are packed once for many. Fails the running test if k does not take it. */
double *run_tested(const tested_kernel *k, fixture *f, const char *isa, int threads, int n,
                   const adj_node *const node[], const char *text);

/* Expects k's results for the row on integers to be equal to the definition, with one thread and
 * with three. */
void expect_exact_row(const tested_kernel *k, oracle_conv row, adj_dtype dtype, const char *isa);
/* Infinities and NaN at the first, the middle and the last element of each operand, against naive:
 * what does not read the value, or reads padding where the other operand has it, stays a number. */
void expect_special(const tested_kernel *k, oracle_conv row, adj_dtype dtype, const char *isa,
                    int operand, int64_t element, double value);
void expect_specials(const tested_kernel *k, adj_dtype dtype, const char *isa);
/* Expects k to refuse the row, with words that the reason has. */
void expect_refused_row(const tested_kernel *k, oracle_conv row, const char *words);
/* Rows for tests of a bias: tile_cases; and two with an Inf or a NaN in the filter, which padding
 * is not multiplied by. */
typedef struct {
    oracle_conv row;
    int64_t element; /* index in the filter; -1: all are numbers */
    double value;
} bias_case;
bias_case bias_case_at(int i);
extern const int n_bias_case;
/* A bias behind y, rounded once, in each bias_case. */
void expect_biases(const tested_kernel *k, adj_dtype dtype, const char *isa);
/* Relative errors of sums of positive numbers are `most` at most. */
void expect_small_errors(const tested_kernel *k, oracle_conv row, adj_dtype dtype, const char *isa,
                         double most);
/* Expects the same bits with one to eight threads. */
void expect_same_bits_for_any_threads(const tested_kernel *k, oracle_conv row, adj_dtype dtype,
                                      const char *isa);
/* Bits 1 << enum oracle_result: which k computes. */
unsigned results_of(const tested_kernel *k, oracle_conv row, adj_dtype dtype, const char *isa);
/* In bf16 with this ISA k computes an ordinary row, and no grouped one, no large stride or filter,
 * no NCHW and no empty one; none in f32 or f16; and none with `less`. */
void expect_only_bf16(const tested_kernel *k, const char *isa, int n_less,
                      const char *const less[]);

/* All candidates of t for a direction, whose names must contain isa; returns how many there are. */
int expect_exact_candidates(conv_problem *p, const test_backend *t, int direction, const char *isa);

#endif
