/* activation.h - the shape rules of activations: adj_op.infer. */
#ifndef OPS_ACTIVATION_H
#define OPS_ACTIVATION_H

#include "adjoint_ext.h"

/* The operand's type, a float. */
adj_status activation_infer(const adj_node *n, void *attrs, adj_type *out);
/* Of a gradient op (dy, x or y): both of one type and shape, which is the result's. */
adj_status activation_grad_infer(const adj_node *n, void *attrs, adj_type *out);

#endif
