/* kernel.h - times single kernels: all candidates of a node, interleaved. */
#ifndef CLI_BENCH_KERNEL_H
#define CLI_BENCH_KERNEL_H

#include "rows.h"

enum { MAX_OPERANDS = 16 };

/* Implementation that the plan selects for a node. */
typedef struct {
    char backend[32], impl[64];
    /* Names of the layouts of the node's distinct operands and of its result, owned by the
     * executor; NULL if unknown. */
    const char *layout[MAX_OPERANDS + 1];
    int count; /* how often */
} planned_choice;

typedef struct bench_kernels bench_kernels; /* the opened backends */

/* Opens the backends; prints an error and returns NULL on failure. */
bench_kernels *bench_kernels_open(const bench_opts *o);
void bench_kernels_close(bench_kernels *k);
/* Sets *c to candidate 0 of the next kernel of any backend, of the first if c->backend is NULL.
 * Returns 0 past the last. */
int bench_next_kernel(const bench_kernels *k, candidate *c);

/* Returns the bytes to read before each run, so that operands are as cold as after `touched` bytes
 * of other reads: at most the size of the last-level cache; 0 with --warm. */
size_t bench_cold_bytes(const bench_opts *o, size_t touched);

typedef struct {
    const adj_node *node;
    int n_planned; /* number of different kernels that compute the node's equals */
    const planned_choice *planned;
    int planned_alone; /* nothing else is timed */
    double seconds;    /* seconds for all candidates, or for each if `each` is set */
    int each;
    size_t cold; /* bytes read before each run; 0: none */
} bench_race;

/* Times the candidates, interleaved, and adds a row for each that was reached in time. Returns 0
 * when out of memory. */
int bench_race_run(bench_kernels *k, const bench_opts *o, const bench_race *wanted,
                   bench_rows *rows);

#endif
