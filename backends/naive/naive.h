/* naive.h - one line of the naive backend's table; the same for every element type. */
#ifndef NAIVE_H
#define NAIVE_H

#include "adjoint_ext.h"

typedef struct part part; /* some contiguous elements of one type: kernels.h */
typedef adj_status naive_run(const adj_call *c); /* computes the one node of a group */
typedef void naive_each(const part *p);
typedef size_t naive_scratch(const adj_node *n);

typedef struct {
    const adj_op *op; /* NULL: end of the table */
    naive_run *run;
    naive_each *each;       /* in place of run, for each part of an elementwise op */
    naive_scratch *scratch; /* bytes; NULL: none */
    int by_operand;         /* 1: compiled for operand 0's type, not for the result's */
    int in_place; /* 1: operand 0's buffer may become the result's, if the types are equal */
} naive_entry;

#endif
