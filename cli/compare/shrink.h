/* shrink.h - a smaller op that fails in the same way. */
#ifndef CLI_COMPARE_SHRINK_H
#define CLI_COMPARE_SHRINK_H

#include "adjoint_check.h"
#include "cli/op/line.h"

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
/* Does one of the first n nodes among roots' rows fail as it should? op NULL: any op. */
int fails_so(const adj_comparison *c, const char *op, adj_verdict verdict, adj_blame blame);

#endif
