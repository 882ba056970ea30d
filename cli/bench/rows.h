/* rows.h - measurements of single kernels, and the statistics of repeated ones. */
#ifndef CLI_BENCH_ROWS_H
#define CLI_BENCH_ROWS_H

#include "bench.h"
#include "exec/candidate.h"

/* ---- repeated measurements and their statistics ---- */

typedef struct {
    int n, max;
    double *seconds;
} samples;

typedef struct {
    int n;
    double median, min, q1, q3; /* seconds */
} spread;

/* Adds a time; returns 0 if there is no room. */
int samples_add(samples *s, double seconds);
/* Sorts the samples and returns their statistics; all zero without samples. */
spread samples_spread(samples *s);
void samples_free(samples *s);

/* ---- rows ---- */

typedef struct {
    const adj_node *node;
    const char *backend;
    char impl[64];
    char layouts[128]; /* of operands and result: "nhwc Acdb16a -> nhwc" */
    char why[ADJ_WHY]; /* reason why it was not timed; "" if it was */
    spread time;
    double estimate; /* seconds: an untuned plan takes the least */
    double flop;
    size_t bytes;       /* read and written, in its layouts */
    int count, planned; /* equal nodes; those computed so */
    int fastest;
} bench_row;

typedef struct {
    int n, max;
    bench_row *row;
    /* Rows and their sums, each weighted by its count; rival: the fastest instead of each planned
     * one. */
    double fastest_seconds, planned_seconds, rival_seconds;
    int convolutions, different; /* of --raw */
    int untimed;                 /* number of candidates not timed for lack of time */
    int unmatched;               /* convolutions with an untimed planned kernel */
} bench_rows;

/* Adds a row for a prepared candidate and returns it; NULL when out of memory. */
bench_row *bench_new_row(bench_rows *rows, const candidate *c);
/* Marks the fastest of the rows from first on, adds it and the planned ones to the sums, and
 * removes the others unless all is 1. */
void bench_rows_sum(bench_rows *rows, int first, int all);
/* Prints the table, if standard output shows text, and writes the JSON. Returns an exit status. */
int bench_rows_write(const bench_opts *o, const bench_rows *rows);

#endif
