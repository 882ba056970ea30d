/* variants.h - variants of an op for checks: other attributes, and shapes close to its own. */
#ifndef CLI_OP_VARIANTS_H
#define CLI_OP_VARIANTS_H

#include "text.h"

/* Sets *out to the i-th set of options besides the op's example: shapes and matching attributes, in
 * the given type. Returns 0 past the last, or if more than the type was given. */
int op_attribute_set(const op_args *given, int i, op_args *out);

/* Writes options, which point into *t, for the i-th shape close to that of n, an op over leaves,
 * limited to the sizes that a check needs. Returns 0 past the last. */
int op_neighbor(const adj_node *n, int i, op_text *t);

/* True if a node can be made of the options. Call it first: a failure leaves the graph in error. */
int op_is_possible(const op_args *args);

#endif
