/* formula.h - formulas of ops in float64: the reference for values, those of naive included. */
#ifndef ADJ_CHECK_FORMULA_H
#define ADJ_CHECK_FORMULA_H

#include "graph/graph.h"

/* True if the op has a formula. */
int formula_exists(const adj_node *n);
/* True if the op is a step of an optimizer or of an optimizer's state. */
int formula_is_step(const adj_op *op);
/* Computes value[] by n's formula. Long sums (convolutions, matmul): only a sample with the
 * corners; other elements stay as they are. */
void formula_value(const adj_node *n, double *const operand[], double *value);
/* Sets size[i] to the sum of |terms| of value[i] and returns 1 for momentum, sgd_step and the group
 * norm gradient, whose terms cancel for absolute values, too; returns 0 for other ops. */
int formula_terms(const adj_node *n, double *const operand[], double *size);

/* ---- for the formulas themselves ---- */

enum { MAX_OPERANDS = 5 };

/* Operands of one element. */
typedef struct {
    double x[MAX_OPERANDS];
    const void *attrs;
} args;

/* Formula of an op, one of three: whole fills zeroed y; at computes an element from broadcast
 * operands; element computes the i-th long sum. terms: sum of |terms| of at; NULL: none. */
typedef struct {
    const adj_op *op;
    void (*whole)(const adj_node *n, double *const in[], double *y);
    double (*element)(const adj_node *n, double *const in[], int64_t i);
    double (*at)(args a), (*terms)(args a);
} formula;
/* formula_array.c, formula_image.c, formula_norm.c; op is NULL at the end. */
extern const formula array_formulas[], image_formulas[], norm_formulas[];
/* formula_image.c: element i of a convolution that multiplies the padding's zeros as well. */
double formula_padded_conv(const adj_node *n, double *const in[], int64_t i);
/* formula_norm.c: formula_terms of the group norm gradient. */
void group_norm_grad_terms(const adj_node *n, double *const operand[], double *size);
/* Fills y with NaN, for a result of another size than attributes and operands give. Returns 0. */
int formula_no_value(const adj_node *n, double *y);
/* Returns the channel of element i of x: its index on the last axis, or on axis 1 for NCHW. */
int64_t formula_channel(adj_shape x, int64_t format, int64_t i);
/* Returns the element of `from` that is broadcast to that element of `to`. */
int64_t broadcast_element(adj_shape from, adj_shape to, int64_t element);
/* True if `from` can be broadcast to `to`. */
int can_broadcast(adj_shape from, adj_shape to);

#endif
