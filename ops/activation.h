/* activation.h - the shape rules of activations: adj_op.infer. */
#ifndef OPS_ACTIVATION_H
#define OPS_ACTIVATION_H

#include "adjoint_ext.h"

/* The operand's type, a float. */
adj_status activation_infer(const adj_node *n, void *attrs, adj_type *out);
/* Of a gradient op (dy, x or y): both of one type and shape, which is the result's. */
adj_status activation_grad_infer(const adj_node *n, void *attrs, adj_type *out);

/* The same of ops whose attributes are alpha, a finite number (adj_value_attrs); how it is printed.
 */
adj_status alpha_infer(const adj_node *n, void *attrs, adj_type *out);
adj_status alpha_grad_infer(const adj_node *n, void *attrs, adj_type *out);
void alpha_show(const void *attrs, FILE *f);

/* For adj_op.domain of ops with a bend at 0. */
void keep_from_zero(int64_t count, double v[]);

/* hard_sigmoid.c: adj_op.domain of hard_sigmoid, hard_swish and their gradients. x is on both sides
 * of the bends at -3 and 3, but never near one: they are not marked ADJ_OP_KINKS, because between
 * the bends they are curved, or add up rounded terms, and do not select. */
void hard_domain(const adj_node *n, int i, int64_t count, double v[]);

#endif
