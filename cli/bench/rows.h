/* rows.h - kernels alone: what was measured of each. */
#ifndef CLI_BENCH_ROWS_H
#define CLI_BENCH_ROWS_H

#include "bench.h"
#include "exec/candidate.h"
#include "samples.h"

typedef struct {
    const adj_node *node;
    const char *backend;
    char impl[64];
    char layouts[128]; /* of operands and result: "nhwc Acdb16a -> nhwc" */
    char why[ADJ_WHY]; /* it could not be run; "" */
    spread time;
    double estimate; /* seconds: an untuned plan takes the least */
    double flop;
    size_t bytes;       /* read and written, in its layouts */
    int count, planned; /* how often the node is computed, and how often the plan does it so */
    int fastest;
} bench_row;

typedef struct {
    int n, max;
    bench_row *row;
    /* Such rows' sums, each times its count; rival: the fastest in place of each that is planned.
     */
    double fastest_seconds, planned_seconds, rival_seconds;
    int convolutions, different; /* of --raw */
    int untimed;                 /* candidates that there was no time for */
    int unmatched; /* convolutions whose planned kernel is none of those that were to be timed */
} bench_rows;

/* A row for a prepared candidate; planned: of its count. NULL: out of memory. */
bench_row *bench_new_row(bench_rows *rows, const candidate *c);
/* Of the rows from first on: marks the one of the least time, adds it and the planned to the sums,
 * and removes all others unless all are wanted. */
void bench_rows_sum(bench_rows *rows, int first, int all);
/* Planned over fastest, at least 1; NAN: nothing that is planned was timed. */
double bench_regret(const bench_rows *rows);
/* The table, if the output is for text, and the JSON. An exit status. */
int bench_rows_write(const bench_opts *o, const bench_rows *rows);

#endif
