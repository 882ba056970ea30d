/* kernel.h - kernels alone, all of a node in turns. */
#ifndef CLI_BENCH_KERNEL_H
#define CLI_BENCH_KERNEL_H

#include "rows.h"

enum { MAX_OPERANDS = 16 };

/* What the plan takes. */
typedef struct {
    char backend[32], impl[64];
    /* The names of the layouts of the node's operands, each once, and of its result; the
     * executor's. Not known: NULL. */
    const char *layout[MAX_OPERANDS + 1];
    int count; /* how often */
} planned_choice;

typedef struct bench_kernels bench_kernels; /* the opened backends */

/* NULL after complaining. */
bench_kernels *bench_kernels_open(const bench_opts *o);
void bench_kernels_close(bench_kernels *k);
/* The next kernel of any of them, its candidate 0; the first when c->backend is NULL. 0: there is
 * none left. */
int bench_next_kernel(const bench_kernels *k, candidate *c);
/* Is it by such an implementation, in such layouts? */
int bench_is_planned(const candidate *c, const planned_choice *p);

/* 64-aligned zeros, touched: the first run meets no page faults. NULL: out of memory. */
char *bench_memory(size_t bytes);
/* Bytes to be read before each run, so that operands are as cold as where `touched` bytes were read
 * since: at most the last-level cache. 0: --warm. */
size_t bench_cold_bytes(const bench_opts *o, size_t touched);

typedef struct {
    const adj_node *node;
    int n_planned; /* its equals are computed in so many ways */
    const planned_choice *planned;
    int planned_alone; /* nothing else is timed */
    double seconds;    /* for all; if each is set, for each candidate */
    int each;
    size_t cold; /* bytes read before each run; 0: none */
} bench_race;

/* Adds a row for each candidate that is in time, in turns with all others. 0: out of memory. */
int bench_race_run(bench_kernels *k, const bench_opts *o, const bench_race *wanted,
                   bench_rows *rows);

#endif
