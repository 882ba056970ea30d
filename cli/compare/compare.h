/* compare.h - adjoint compare: options, the command line that repeats them, minimized failures,
 * reports. */
#ifndef CLI_COMPARE_H
#define CLI_COMPARE_H

#include <stdio.h>

#include "check/inspect.h"
#include "cli/emitted.h"
#include "cli/op/graph.h"

enum { MAX_LISTED = 32, LINE = 2048 };

typedef struct {
    compared_opts graph;
    const char *configs, *json, *junit;
    double seconds, shrink;
    int64_t seed, runs, threads, exact, all, guard, also_batch;
    int n_config; /* 0: the default ones */
    char *config_text;
    const char *config[MAX_LISTED];
    checked_backends backends;
} compare_opts;

/* Writes the command line that repeats the comparison with these configurations (NULL: as given),
 * quoted for a shell. */
void compare_line(const compare_opts *o, const compared_opts *described, const char *configs,
                  char line[LINE]);
/* "a,b" as --configs takes it; with ";" where a name has a comma. */
void compare_pair(const char *a, const char *b, char *text, size_t size);

/* ---- failures made small (shrink.c): for each configuration that fails, a small command line that
 * shows its first divergence ---- */

typedef struct {
    const adj_compare_opts *opts; /* with two configurations: the reference and what fails */
    const adj_trial_opts *trials; /* NULL: the default */
    adj_verdict verdict;          /* verdict and blame that the op must fail with */
    adj_blame blame;
    double seconds; /* deadline for new trials */
    int max;        /* trials */
    int tried;      /* out */
} shrinking;

/* Reduces the numbers of the line as far as possible; the result has failed twice in a row. Returns
 * 0 if the line does not fail, or not when run by `adjoint compare`. */
int shrink(shrinking *s, op_line *l);

typedef struct {
    const compare_row *row; /* first row with a fault of its own; NULL: only the whole run failed */
    int tried;              /* smaller ones run */
    char line[LINE];        /* "": the configuration does not fail */
} reproducer;

/* Returns one for each configuration, to be freed. opts, trials: those of the comparison. */
reproducer *reproducers(const compare_opts *o, const adj_compare_opts *opts,
                        const adj_trial_opts *trials, const adj_comparison *c);

/* ---- reports (table.c, reports.c) ---- */

/* A comparison and what its reports hold. */
typedef struct compare_run {
    compared graph;
    const adj_comparison *comparison;
    reproducer *again;              /* by configuration */
    char title[160];                /* "lenet, batch 2, seed 1" */
    char line[LINE];                /* command line that repeats the whole */
    int all;                        /* 1: one line per row instead of per op */
    const struct compare_run *also; /* another failed comparison, for other formats than the table;
                                       NULL: none */
} compare_run;

/* True if the whole graph was run; else only distinct nodes were compared by themselves, without
 * the time of a step and without a repeated run. */
static inline int has_whole_run(const compare_result *r) { return r->ms > 0; }

void write_table(FILE *f, const compare_run *o);
/* source: a compare_run. 0 on success. */
int write_json(FILE *f, const void *source);
int write_junit(FILE *f, const void *source);

#endif
