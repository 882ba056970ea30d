/* formula.h - ops by their formulas in float64: the reference of every value that they cover,
 * naive's own among them. */
#ifndef ADJ_CHECK_FORMULA_H
#define ADJ_CHECK_FORMULA_H

#include "graph/graph.h"

/* True if the op has a formula. */
int formula_exists(const adj_node *n);
/* True if the op is a step of an optimizer or of an optimizer's state. */
int formula_is_step(const adj_op *op);
/* Writes value[i] for the operands' values; n has a formula. Of long sums (convolutions, matmul) a
 * sample of elements is computed, the corners among them, and the others of value stay as they are.
 */
void formula_value(const adj_node *n, double *const operand[], double *value);
/* Sets size[i] to the sum of the magnitudes of value[i]'s terms and returns 1: of momentum and
 * sgd_step, and of the gradient of a group norm, whose terms cancel for the absolute values of
 * its operands as well. Returns 0 for all others. */
int formula_terms(const adj_node *n, double *const operand[], double *size);

/* ---- for the formulas themselves ---- */

enum { MAX_OPERANDS = 5 };

/* An element's operands. */
typedef struct {
    double x[MAX_OPERANDS];
    const void *attrs;
} args;

/* An op's formula: one of three functions. whole adds to zeros; at's operands are broadcast to the
 * result; element computes the i-th of a long sum. terms gives the sum of the magnitudes of at's
 * terms; NULL: none does. */
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
/* formula_norm.c: formula_terms of that gradient. */
void group_norm_grad_terms(const adj_node *n, double *const operand[], double *size);
/* The channel of element i of x, which is along the last axis, or in NCHW along axis 1. */
int64_t formula_channel(adj_shape x, int64_t format, int64_t i);
/* Returns the element of a value of shape from that is broadcast to that element of shape to.
 * can_broadcast: true if it can be. */
int64_t broadcast_element(adj_shape from, adj_shape to, int64_t element);
int can_broadcast(adj_shape from, adj_shape to);

#endif
