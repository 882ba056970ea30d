/* shrink.h - minimizes failures of a comparison: for each failing configuration finds a small
 * command line that shows its first divergence. */
#ifndef CLI_COMPARE_SHRINK_H
#define CLI_COMPARE_SHRINK_H

#include "check/inspect.h"
#include "cli/op/line.h"
#include "options.h"

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

/* Returns one for each configuration, to be freed; NULL when out of memory. opts, trials:
 * those of the comparison. */
reproducer *reproducers(const compare_opts *o, const adj_compare_opts *opts,
                        const adj_trial_opts *trials, const adj_comparison *c);

#endif
