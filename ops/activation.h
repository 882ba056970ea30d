/* activation.h - the shape rules of activations: adj_op.infer. */
#ifndef OPS_ACTIVATION_H
#define OPS_ACTIVATION_H

#include "adjoint_ext.h"

/* The operand's type, a float. */
adj_status activation_infer(const adj_node *n, void *attrs, adj_type *out);
/* Of a gradient op (dy, x or y): both of one type and shape, which is the result's. */
adj_status activation_grad_infer(const adj_node *n, void *attrs, adj_type *out);

/* hard_sigmoid.c: adj_op.domain of hard_sigmoid, hard_swish and their gradients. x is on both sides
 * of the bends at -3 and 3, but never near one: they are not marked ADJ_OP_KINKS, because between
 * the bends they are curved, or add up rounded terms, and do not select. */
void hard_domain(const adj_node *n, int i, int64_t count, double v[]);

#endif
