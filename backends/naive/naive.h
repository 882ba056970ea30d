/* naive.h - a row of the naive backend's tables, which has the same form for every element type. */
#ifndef NAIVE_H
#define NAIVE_H

#include "graph/op.h"

typedef struct part part; /* a contiguous range of elements of one type: elementwise.c */
typedef adj_status naive_run(const adj_call *c); /* computes the one node of a group */
typedef void naive_each(const part *p);
typedef size_t naive_scratch(const adj_node *n);

typedef struct {
    const adj_op *op; /* NULL ends the table */
    naive_run *run;
    naive_each *each;       /* called by run for each part of an elementwise op */
    naive_scratch *scratch; /* returns bytes; NULL for none */
    int by_operand;         /* 1: compiled for operand 0's type instead of the result's */
    int by_channel;         /* 1: an elementwise op's last operand is a vector along the channels */
    int in_place; /* 1: operand 0's buffer may become the result's, if the types are equal */
} naive_entry;

#endif
