/* line.h - one op as numbers that can be changed: read from a node, written as the options of a
 * command line. */
#ifndef CLI_OP_LINE_H
#define CLI_OP_LINE_H

#include "text.h"

typedef struct {
    op_text text; /* options that do not change */
    adj_shape in, filter;
    adj_format format;
    int is_conv, is_pool, is_product;
    int is_pair; /* 1: both shapes stay equal */
    adj_conv conv;
    adj_pool pool;
    int64_t groups, outputs;    /* channels and outputs of each group of a dense convolution */
    int in_inner, filter_inner; /* summed axes of a matrix product */
} op_line;

/* Writes n as an op line, without attributes that no option can describe (op_text_write). Returns 0
 * if n has no operand. */
int op_line_of(const adj_node *n, op_line *l);
/* Returns the options with l's numbers; they point into t. */
op_args op_line_args(const op_line *l, op_text *t);

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
