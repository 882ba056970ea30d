/* write.h - a comparison written for people and for programs. */
#ifndef CLI_COMPARE_WRITE_H
#define CLI_COMPARE_WRITE_H

#include <stdio.h>

#include "shrink.h"

typedef struct compare_source compare_source;
struct compare_source {
    const adj_comparison *comparison;
    const char *title;       /* "lenet, batch 2, seed 1" */
    const char *repro;       /* the whole again */
    const reproducer *again; /* by configuration */
    int all;                 /* 1: one line per row instead of per op */
    const compare_source
        *also; /* another failed comparison, for other formats than the table; NULL: none */
};

/* True if the whole graph was run; else only distinct nodes were compared by themselves, without
 * the time of a step and without a repeated run. */
static inline int has_whole_run(const compare_result *r) { return r->ms > 0; }

void write_table(FILE *f, const compare_source *o);
/* source: a compare_source. 0 on success. */
int write_json(FILE *f, const void *source);
int write_junit(FILE *f, const void *source);

#endif
