/* line.h - a node as the options of a command line that build it again, with every attribute, and
 * with numbers that can be changed. */
#ifndef CLI_OP_LINE_H
#define CLI_OP_LINE_H

#include "args.h"

typedef struct {
    op_args args; /* points to the members below or to constants; defaults are omitted */
    char in_text[128], filter_text[128], attr[OP_ATTR_TEXT];
    adj_shape in, filter;
    int has_filter, is_same; /* 1: a second operand; 1: which is the first again */
    adj_format format;
    int is_conv, is_pool, is_product;
    int is_pair; /* 1: both shapes stay equal */
    adj_conv conv;
    adj_pool pool;
    int64_t groups, outputs;    /* channels and outputs of each group of a dense convolution */
    int in_inner, filter_inner; /* summed axes of a matrix product */
} op_line;

/* Writes options from which op_args_build makes an equal node (adj_gradcheck_same); returns 0 if no
 * options describe n: a leaf, or an op or operand that the tool does not build. */
int op_line_of(const adj_node *n, op_line *l);
/* Writes options without checking them: attributes that options cannot describe are omitted, so the
 * options may build another node. Returns 0 if n is a leaf. */
int op_line_write(const adj_node *n, op_line *l);
/* Returns the options with l's numbers; they point into l. */
op_args op_line_args(op_line *l);

/* A number of the line that may become smaller, down to min. */
typedef struct {
    int64_t *value, min;
} op_number;
enum { MAX_NUMBERS = 24 };
/* Lists the numbers worth reducing, the most useful first; returns how many. */
int op_line_numbers(op_line *l, op_number numbers[MAX_NUMBERS]);
/* Updates sizes that follow from others, after a number has changed. */
void op_line_settle(op_line *l);

#endif
