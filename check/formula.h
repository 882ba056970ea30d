/* formula.h - element-wise ops by their formulas in float64: an answer that no kernel gives. */
#ifndef ADJ_CHECK_FORMULA_H
#define ADJ_CHECK_FORMULA_H

#include "graph/graph.h"

/* Does the op have a formula? Each operand has to be shaped as the result, or be one number. */
int formula_exists(const adj_node *n);
/* Is it a step of an optimiser, or of what is kept beside the parameters? */
int formula_is_step(const adj_op *op);
/* value[i] for the operands' values; n has a formula. size, unless it is NULL: the sum of the
 * magnitudes of the terms that are added up for it. */
void formula_value(const adj_node *n, double *const operand[], double *value, double *size);

#endif
