/* grow.h - a graph of arbitrary builder calls, decoded from bytes. */
#ifndef TESTS_FUZZ_GROW_H
#define TESTS_FUZZ_GROW_H

#include "adjoint_nn.h"
#include "fuzz/bytes.h"

enum { MAX_VALUES = 64, MAX_ELEMS = 4096 };

/* The values that the graph has so far, all of at most MAX_ELEMS elements. wild: operands and
 * attributes are whatever the bytes say; otherwise they are made to fit, so that the graph becomes
 * large. uniform: all floats have the dtype, and there is no input but the caller's. */
typedef struct {
    bytes in;
    adj_graph *g;
    adj_updates *updates;
    int wild, uniform;
    adj_dtype dtype; /* type of most leaves */
    int n, leaves;
    adj_node *value[MAX_VALUES];
} garden;

/* Calls one builder, and adds what it returns. */
void grow(garden *t);
/* Any value; one of a dtype and rank, made when there is none (dtype -1, rank -1: any). */
adj_node *any_value(garden *t);
adj_node *value_of(garden *t, int dtype, int64_t rank);
adj_node *new_leaf(garden *t, adj_dtype dtype, adj_shape shape);
adj_shape any_shape(garden *t, int64_t rank);
adj_node *keep(garden *t, adj_node *y);
/* Another value's elements in that shape, which share its memory; or a leaf. */
adj_node *view_of(garden *t, adj_dtype dtype, adj_shape shape);
/* An operand shaped like x: x itself, another value, a view, or a leaf. */
adj_node *like(garden *t, adj_node *x);
/* Small integers, or step more for each, by element and stream. */
void fill_data(void *data, adj_dtype dtype, int64_t n, unsigned stream, double step);

/* grow_conv.c: the builders with windows. */
void grow_conv(garden *t);
void grow_pool(garden *t);
/* Adds a block of a network: convolution, bias, activation, a shortcut. */
void grow_block(garden *t);

#endif
