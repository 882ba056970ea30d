/* naive.h - one line of the naive backend's table; the same for every element type. */
#ifndef NAIVE_H
#define NAIVE_H

#include "adjoint_ext.h"

typedef struct {
    const adj_op *op; /* NULL: end of the table */
    adj_status (*run)(const adj_call *c);
    size_t (*scratch)(const adj_node *n); /* bytes; NULL: none */
    int by_operand; /* 1: compiled for operand 0's type, not for the result's */
    int in_place;   /* 1: operand 0's buffer may become the result's, if the types are equal */
} naive_entry;

#endif
