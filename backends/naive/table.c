/* table.c - which op is computed by which naive kernel; compiled once per element type. */
#include "kernels.h"

const naive_entry KERNEL(table)[] = {
    {.op = &adj_op_fill, .run = KERNEL(fill)},
    {.op = &adj_op_conv2d, .run = KERNEL(conv2d)},
    {.op = &adj_op_conv2d_backprop_input,
     .run = KERNEL(conv2d_backprop_input),
     .scratch = KERNEL(conv2d_backprop_input_scratch)},
    {.op = &adj_op_conv2d_backprop_filter, .run = KERNEL(conv2d_backprop_filter)},
    {.op = &adj_op_depthwise_conv2d_native, .run = KERNEL(depthwise_conv2d_native)},
    {.op = &adj_op_depthwise_conv2d_native_backprop_input,
     .run = KERNEL(depthwise_conv2d_native_backprop_input)},
    {.op = &adj_op_depthwise_conv2d_native_backprop_filter,
     .run = KERNEL(depthwise_conv2d_native_backprop_filter)},
    {.op = NULL},
};
