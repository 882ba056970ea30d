/* kernel.h - kernels alone: measuring them (kernel.c), or all of a node in turns (race.c). */
#ifndef CLI_BENCH_KERNEL_H
#define CLI_BENCH_KERNEL_H

#include "rows.h"

enum { MAX_OPERANDS = 16 };

/* What the plan takes. */
typedef struct {
    char backend[32], impl[64];
    char layouts[128]; /* as in a row, where bench_usual has said it */
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
/* Of the machine's last-level cache, as far as it is told. */
size_t bench_cache_bytes(void);

/* Adds a row for the candidate that the plan takes, or for each there is (all), of a node of up to
 * MAX_OPERANDS; each is run for o->seconds. 0: out of memory. */
int bench_node(bench_kernels *k, const bench_opts *o, const adj_node *n, const planned_choice *p,
               int all, bench_rows *rows);

typedef struct {
    const adj_node *node;
    int n_planned; /* its equals are computed in so many ways */
    const planned_choice *planned;
    double deadline; /* of seconds_now */
    size_t cold;     /* bytes read before each run; 0: none */
} bench_race;

/* Adds a row for each candidate that is in time, in turns with all others. 0: out of memory. */
int bench_race_run(bench_kernels *k, const bench_opts *o, const bench_race *wanted,
                   bench_rows *rows);
/* What a plan of the node alone takes among the opened backends. 0: none of them computes it. */
int bench_usual(bench_kernels *k, const adj_node *n, planned_choice *p);

#endif
