/* text.h - a node as the options that build it again, with every attribute. */
#ifndef CLI_OP_TEXT_H
#define CLI_OP_TEXT_H

#include "args.h"

typedef struct {
    op_args args; /* points into what follows, or to constants; defaults are left out */
    char in[128], filter[128], attr[OP_ATTR_TEXT];
    adj_shape in_shape, filter_shape;
    int has_filter;
} op_text;

/* 1: op_args_build makes a node of *t's args that is the same to check (adj_gradcheck_same). 0: no
 * options say what n is: a leaf, an op or operand that the tool does not build. */
int op_text_of(const adj_node *n, op_text *t);

/* The same, not tried: what options cannot say is left out, so what they build may be another node.
 * 0: n is a leaf. */
int op_text_write(const adj_node *n, op_text *t);
/* Other numbers in the place of t's. The filter's shape counts if t has one. */
void op_text_shapes(op_text *t, adj_shape in, adj_shape filter);
void op_text_conv(op_text *t, const adj_conv *a);
void op_text_pool(op_text *t, const adj_pool *a);
/* to's args point into to. */
void op_text_copy(op_text *to, const op_text *t);

#endif
