/* sum.h - rows of a comparison added up: one, or all of an op under a configuration. */
#ifndef CLI_COMPARE_SUM_H
#define CLI_COMPARE_SUM_H

#include "adjoint_check.h"

typedef struct {
    const char *op, *implementation; /* of the slowest row */
    const char *crash;               /* the reason of the last crash; NULL: none */
    const char *other_impl;          /* what the first says that ran on another implementation than
                                        was asked for; NULL: none did */
    int nodes, failed, n_other_impl;
    double worst, ulp, rel, sqnr, sqnr_propagated, us, reference_us, gflop;
    double slowest; /* us */
} op_sum;

op_sum sum_row(const adj_compare_row *row);
/* The op that configuration k's row r is the first of. 0: it is not a first one. */
int sum_op(const adj_comparison *c, int k, int r, op_sum *s);

/* Bytes that hold any result. */
enum { RESULT = 24 };
/* "pass", "2 FAIL", "1 CRASH"; returns text. */
const char *sum_result(const op_sum *s, char text[RESULT]);

#endif
