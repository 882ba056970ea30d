/* again.h - for each configuration that fails, the smallest command line found that shows
 * its first divergence. */
#ifndef CLI_COMPARE_AGAIN_H
#define CLI_COMPARE_AGAIN_H

#include "adjoint_check.h"
#include "options.h"

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
