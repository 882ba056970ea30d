/* text.h - a node as the options that build it again, with every attribute. */
#ifndef CLI_OP_TEXT_H
#define CLI_OP_TEXT_H

#include "args.h"

typedef struct {
    op_args args; /* points to the members below or to constants; defaults are omitted */
    char in[128], filter[128], attr[OP_ATTR_TEXT];
    adj_shape in_shape, filter_shape;
    int has_filter, is_same; /* 1: a second operand; 1: which is the first again */
} op_text;

/* Writes options from which op_args_build makes an equal node (adj_gradcheck_same); returns 0 if no
 * options describe n: a leaf, or an op or operand that the tool does not build. */
int op_text_of(const adj_node *n, op_text *t);

/* Writes options without checking them: attributes that options cannot describe are omitted, so the
 * options may build another node. Returns 0 if n is a leaf. */
int op_text_write(const adj_node *n, op_text *t);
/* Replaces the shapes of t; the filter's only if t has one. */
void op_text_shapes(op_text *t, adj_shape in, adj_shape filter);
void op_text_conv(op_text *t, const adj_conv *a);
void op_text_pool(op_text *t, const adj_pool *a);

#endif
