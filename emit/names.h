/* names.h - names of functions. */
#ifndef EMIT_NAMES_H
#define EMIT_NAMES_H

#include "emit.h"
#include "graph/graph.h"

/* Returns the name of the layer that a node of g belongs to: the prefix of its parameters' names,
 * its label, or those of its operand. */
expression layer_of(const adj_graph *g, const adj_node *n);
/* Returns the parameter or state that the value follows from by way of first operands, or NULL. */
const adj_node *param_behind(const adj_node *n);
/* Returns the last part of a function's name, such as "forward". Requires: a row for the op. */
const char *suffix_of(const adj_node *n);

#endif
