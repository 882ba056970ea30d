/* activation.h - what ops share that bend a value element by element. Operands and results have one
 * float type and one shape (no adj_op.infer); a gradient op reads dy and, as its last operand, x or
 * y. */
#ifndef OPS_ACTIVATION_H
#define OPS_ACTIVATION_H

#include "adjoint_ext.h"

/* Flags of ops that are curved, and of those that are straight between kinks. */
enum { CURVED = ADJ_OP_ELEMENTWISE | ADJ_OP_HALF, STRAIGHT = CURVED | ADJ_OP_KINKS };

/* One finite number, alpha: adj_value_attrs. */
extern const adj_schema alpha_schema;

/* adj_op.grad of a gradient op that is dy times something which changes in steps: linear in dy,
 * with the op itself as derivative; the other operand's is zero almost everywhere. */
void steps_grad(adj_node *dx, adj_node *e, adj_node *de[]);

/* For adj_op.domain of ops with a bend at 0. */
void keep_from_zero(int64_t count, double v[]);

#endif
