/* registry.c - every op, for tests and tools. */
#include "adjoint_ext.h"

/* clang-format off: one op a line */
const adj_op *const adj_ops[] = {
    &adj_op_input,
    &adj_op_param,
    &adj_op_state,
    &adj_op_const,
    &adj_op_fill,
    &adj_op_conv2d,
    &adj_op_conv2d_backprop_input,
    &adj_op_conv2d_backprop_filter,
    &adj_op_depthwise_conv2d_native,
    &adj_op_depthwise_conv2d_native_backprop_input,
    &adj_op_depthwise_conv2d_native_backprop_filter,
    NULL,
};
