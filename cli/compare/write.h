/* write.h - a comparison written for people and for programs. */
#ifndef CLI_COMPARE_WRITE_H
#define CLI_COMPARE_WRITE_H

#include <stdio.h>

#include "again.h"

typedef struct {
    const char *what;        /* "lenet, batch 2, seed 1" */
    const char *repro;       /* the whole again */
    const reproducer *again; /* by configuration */
    int all;                 /* the table has a line for every row, not for every op */
} write_opts;

void write_table(FILE *f, const adj_comparison *c, const write_opts *o);
/* 0 on success. */
int write_json(FILE *f, const adj_comparison *c, const write_opts *o);
int write_csv(FILE *f, const adj_comparison *c);
int write_junit(FILE *f, const adj_comparison *c, const write_opts *o);
int write_html(FILE *f, const adj_comparison *c, const write_opts *o);

/* sum.c: rows of one op under one configuration. */
typedef struct {
    const char *op, *implementation; /* of the slowest row */
    const char *crash;               /* the reason of the last crash; NULL: none */
    int nodes, failed, exact, not_repeated;
    double worst, ulp, rel, sqnr, sqnr_propagated, us, reference_us, gflop;
    size_t bytes;
    int reorders;
} op_sum;
/* The i-th op of configuration k, in the order of first use; 0: there is none. */
int sum_op(const adj_comparison *c, int k, int i, op_sum *s);

#endif
