/* activation.h - declarations shared by elementwise activations. Operands and results have one
 * float type and one shape (no adj_op.infer); a gradient op reads dy and, as its last operand, x
 * or y. */
#ifndef OPS_ACTIVATION_H
#define OPS_ACTIVATION_H

#include "graph/op.h"

/* Flags of smooth curves, and of functions that are piecewise linear. */
enum { CURVED = ADJ_OP_ELEMENTWISE | ADJ_OP_HALF, STRAIGHT = CURVED | ADJ_OP_KINKS };

/* Attributes of one finite number, alpha: adj_value_attrs. */
extern const adj_schema alpha_schema;
static inline double alpha_of(const adj_node *n)
{
    return ((const adj_value_attrs *)n->attrs)->value;
}

/* adj_op.grad of a gradient op that is dy times a piecewise constant function: it is linear in
 * dy, with the op itself as derivative; the other operand's derivative is zero almost
 * everywhere. */
void steps_grad(adj_node *dx, adj_node *e, adj_node *de[]);

/* adj_op.domain of ops with a kink at 0: moves values away from it. */
void keep_from_zero(int64_t count, double v[]);

#endif
