/* variants.h - an op as a check goes through it: with other attributes, and with shapes around its
 * own. */
#ifndef CLI_OP_VARIANTS_H
#define CLI_OP_VARIANTS_H

#include "text.h"

/* The i-th set of options beside the op's own example: shapes, and attributes that go with them, in
 * the type that is given. 0: there is none, or more than the type was given. */
int op_attribute_set(const op_args *given, int i, op_args *out);

/* A shape around the one of node n, which is an op over leaves: the i-th of those that are no
 * larger than a check needs, as options that point into *t. 0: there are no more. */
int op_neighbor(const adj_node *n, int i, op_text *t);

/* Can a node be made of the options? What fails leaves its graph failed, so this is asked first. */
int op_is_possible(const op_args *args);

#endif
