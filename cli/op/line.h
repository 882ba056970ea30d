/* line.h - one op as numbers that can be changed: read from a node, written as the options of a
 * command line. */
#ifndef CLI_OP_LINE_H
#define CLI_OP_LINE_H

#include "text.h"

typedef struct {
    op_text text; /* all that stays as it is */
    adj_shape in, filter;
    adj_format format;
    int is_conv, is_pool, is_product;
    int is_pair; /* both shapes are the same, and stay so */
    adj_conv conv;
    adj_pool pool;
    int64_t groups, outputs;    /* of a dense convolution; outputs: of each group */
    int in_inner, filter_inner; /* of a product of matrices: the axes that are summed over */
} op_line;

/* n as an op line; what no option can say of it is left out (op_text_write). 0: no operand. */
int op_line_of(const adj_node *n, op_line *l);
/* The options that l's numbers make of its text; they point into t. */
op_args op_line_args(const op_line *l, op_text *t);

/* A number of the line that may become smaller, down to min. */
typedef struct {
    int64_t *value, min;
} op_number;
enum { MAX_NUMBERS = 24 };
/* Those worth making smaller, the most useful first. */
int op_line_numbers(op_line *l, op_number numbers[MAX_NUMBERS]);
/* Sizes that follow from others, after a number has changed. */
void op_line_settle(op_line *l);

#endif
