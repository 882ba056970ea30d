/* op_text.h - a node as the options that build it again, with every attribute. */
#ifndef CLI_OP_TEXT_H
#define CLI_OP_TEXT_H

#include "op_args.h"

enum { REAL_TEXT = 40 };

typedef struct {
    op_args args; /* points into what follows */
    char in[128], filter[128], strides[96], dilations[96], ksize[96], pads[192], attr[400];
} op_text;

/* 1: op_args_build makes a node of *t's args that is the same to check (adj_gradcheck_same). 0: no
 * options say what n is: a leaf, an op or operand that the tool does not build. */
int op_text_of(const adj_node *n, op_text *t);

/* The shortest text that reads back as v. */
void write_real(char text[REAL_TEXT], double v);

#endif
