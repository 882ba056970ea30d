/* twin.h - expected values of every node of a graph: the same graph on naive with every value kept
 * and nothing assigned, so that no memory is shared and no update is seen. */
#ifndef TESTS_FUZZ_TWIN_H
#define TESTS_FUZZ_TWIN_H

#include <stdio.h>

#include "adjoint.h"

typedef struct {
    adj_exec *exec;
    int n;
    adj_node **node; /* nodes that the roots need, in id order */
    void **value;    /* by position in node */
    char *sure;      /* by position: every backend must get these very numbers */
    int *at;         /* by id: position in node, or -1 */
} twin;

/* 0: too large to be kept. */
int twin_new(twin *t, adj_graph *g, int n_root, adj_node *const root[]);
void twin_free(twin *t);
/* Runs it, and gets the values; of a run that fails those of parameters and states. */
adj_status twin_run(twin *t);
const void *twin_value(const twin *t, const adj_node *n);
int twin_is_sure(const twin *t, const adj_node *n);

/* Equal numbers, or NaN both; bits: 0 and -0 differ. */
int same_values(const adj_node *n, const void *a, const void *b, int bits);
/* Writes where they differ first. */
void print_difference(FILE *f, const adj_node *n, const void *got, const void *want);

#endif
