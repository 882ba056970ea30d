/* kernel.h - the candidates that backends have for one node, each timed alone. */
#ifndef CLI_BENCH_KERNEL_H
#define CLI_BENCH_KERNEL_H

#include "bench.h"

enum { MAX_OPERANDS = 16 };

/* What the plan takes. */
typedef struct {
    char backend[32], impl[64];
} planned_choice;

typedef struct bench_kernels bench_kernels; /* the opened backends */

/* NULL after complaining. */
bench_kernels *bench_kernels_open(const bench_opts *o);
void bench_kernels_close(bench_kernels *k);
/* Adds a row for the candidate that the plan takes, or for each there is (all), of a node of up to
 * MAX_OPERANDS. 0: out of memory. */
int bench_node(bench_kernels *k, const bench_opts *o, const adj_node *n, const planned_choice *p,
               int all, bench_rows *rows);
/* Of the rows from first on: the one of least median, or NULL; marks it. */
bench_row *bench_fastest(bench_rows *rows, int first);

#endif
