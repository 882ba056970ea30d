/* registry.c - every op, for tests and tools. */
#include "adjoint_ext.h"

const adj_op *const adj_ops[] = {
    &adj_op_input,
    &adj_op_param,
    &adj_op_state,
    &adj_op_const,
    &adj_op_fill,
    NULL,
};
