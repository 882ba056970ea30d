/* shrink.h - what fails in a comparison, made smaller: for each configuration that does, the
 * smallest command line found that shows its first divergence. */
#ifndef CLI_COMPARE_SHRINK_H
#define CLI_COMPARE_SHRINK_H

#include "adjoint_check.h"
#include "cli/op/line.h"
#include "options.h"

typedef struct {
    const adj_compare_opts *opts; /* with two configurations: the reference and what fails */
    adj_verdict verdict;          /* how the op must fail: this, and blamed so */
    adj_blame blame;
    double seconds; /* no new trial after that */
    int max;        /* trials */
    int tried;      /* out */
} shrinking;

/* Makes the line's numbers as small as they go; it fails twice in a row with what remains. 0: it
 * does not fail to begin with, or not as `adjoint compare` would run it. */
int shrink(shrinking *s, op_line *l);

typedef struct {
    const adj_compare_row *row; /* the first with a fault of its own; NULL: the whole run alone */
    int tried;                  /* smaller ones run */
    char line[LINE];            /* "": the configuration does not fail */
} reproducer;

/* One for each configuration, to be freed; NULL when out of memory. opts: as the comparison was
 * made. */
reproducer *reproducers(const compare_opts *o, const adj_compare_opts *opts,
                        const adj_comparison *c);

#endif
