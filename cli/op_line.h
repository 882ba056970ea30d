/* op_line.h - one op as numbers that can be changed: read from a node, written as the options of a
 * command line. */
#ifndef CLI_OP_LINE_H
#define CLI_OP_LINE_H

#include "op_args.h"

typedef struct {
    const char *op;
    adj_dtype dtype;
    adj_shape in, filter; /* filter.rank 0: none */
    adj_format format;
    int is_conv, is_pool;
    adj_conv conv;
    adj_pool pool;
    int64_t groups, outputs; /* of a dense convolution; outputs: of each group */
} op_line;

/* The options' texts. */
typedef struct {
    char in[128], filter[128], strides[96], dilations[96], ksize[96], pads[192];
} op_words;

/* n as an op line. What an op line cannot say (the factor of a scale, the axes of a reduction) is
 * left out, so the op built from it may be another: try it. usual: the format of ops whose
 * attributes do not tell. 0: n has no operand. */
int op_line_of(const adj_node *n, adj_format usual, op_line *l);
/* args point to words, which must outlive them. */
op_args op_line_args(const op_line *l, op_words *words);

/* A number of the line that may become smaller, down to least. */
typedef struct {
    int64_t *value, least;
} op_number;
enum { MOST_NUMBERS = 24 };
/* Those worth making smaller, the most useful first. */
int op_line_numbers(op_line *l, op_number numbers[MOST_NUMBERS]);
/* Sizes that follow from others, after a number has changed. */
void op_line_settle(op_line *l);

#endif
