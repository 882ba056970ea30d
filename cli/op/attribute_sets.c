/* attribute_sets.c - see variants.h. The usual value of an attribute may hide a fault: a
 * permutation that is its own inverse, no smoothing, no decay, equal sizes, the same window in both
 * directions.
 */
#include "variants.h"

/* Ops that take the same sets. */
#define CONV "conv2d conv2d_backprop_input conv2d_backprop_filter"
#define DEPTHWISE                                                                                  \
    "depthwise_conv2d_native depthwise_conv2d_native_backprop_input "                              \
    "depthwise_conv2d_native_backprop_filter"
#define POOL "max_pool max_pool_grad max_pool_grad_grad avg_pool avg_pool_grad"
#define REDUCE "reduce_sum reduce_mean reduce_max"
#define BINARY "add sub mul div maximum minimum"
#define CROSS_ENTROPY                                                                              \
    "softmax_cross_entropy softmax_cross_entropy_grad sparse_softmax_cross_entropy "               \
    "sparse_softmax_cross_entropy_grad"
#define CHANNELS                                                                                   \
    "batch_norm batch_norm_grad batch_norm_grad_sums bias_add bias_add_grad batch_norm_stats "     \
    "prelu prelu_grad"
#define GROUP_NORM "group_norm group_norm_grad group_norm_grad_sums"
#define RESIZE "resize resize_grad"

/* op: all to which the set belongs. */
static const op_args sets[] = {
    {.op = CONV, .in = "2,9,8,4", .filter = "3,2,4,6", .strides = "1,2,1,1"},
    {.op = CONV, .in = "2,9,8,4", .filter = "3,3,4,6", .dilations = "1,2,2,1"},
    {.op = CONV, .in = "2,9,8,4", .filter = "2,3,4,6", .padding = "VALID", .strides = "1,1,2,1"},
    {.op = CONV,
     .in = "2,9,8,4",
     .filter = "3,3,4,6",
     .padding = "EXPLICIT",
     .explicit_paddings = "0,0,2,1,0,1,0,0"},
    {.op = CONV, .in = "2,4,9,8", .filter = "3,2,4,6", .data_format = "NCHW", .strides = "1,1,2,2"},
    {.op = DEPTHWISE, .in = "2,9,8,4", .filter = "3,2,4,2", .strides = "1,2,1,1"},
    {.op = DEPTHWISE, .in = "2,9,8,4", .filter = "3,3,4,2", .dilations = "1,2,2,1"},
    {.op = DEPTHWISE,
     .in = "2,9,8,4",
     .filter = "2,3,4,2",
     .padding = "VALID",
     .strides = "1,1,2,1"},
    {.op = DEPTHWISE,
     .in = "2,9,8,4",
     .filter = "3,3,4,2",
     .padding = "EXPLICIT",
     .explicit_paddings = "0,0,2,1,0,1,0,0"},
    {.op = DEPTHWISE,
     .in = "2,4,9,8",
     .filter = "3,2,4,2",
     .data_format = "NCHW",
     .strides = "1,1,2,2"},
    {.op = CONV, .in = "2,9,8,4", .filter = "3,3,2,6"},
    {.op = POOL, .in = "2,9,8,3", .strides = "1,2,1,1", .ksize = "1,3,2,1"},
    {.op = POOL, .in = "2,9,8,3", .padding = "VALID", .strides = "1,1,2,1", .ksize = "1,2,3,1"},
    {.op = POOL, .in = "2,3,9,8", .data_format = "NCHW", .strides = "1,1,2,2", .ksize = "1,1,3,3"},
    {.op = RESIZE, .in = "2,5,4,3", .attr = "9,7,0,0"},
    {.op = RESIZE, .in = "2,5,4,3", .attr = "9,7,0,2"},
    {.op = RESIZE, .in = "2,5,4,3", .attr = "9,7,1,1"},
    {.op = RESIZE, .in = "2,5,4,3", .attr = "3,3,1,2"},
    {.op = RESIZE, .in = "2,3,5,4", .data_format = "NCHW", .attr = "9,7,0,1"},
    {.op = "batch_norm batch_norm_grad batch_norm_grad_sums", .attr = "0.5"},
    {.op = "batch_norm batch_norm_grad_sums", .attr = "0.001,1"}, /* running statistics */
    {.op = "batch_norm_grad", .attr = "0.001,0,1"},
    {.op = CHANNELS, .in = "2,3,5,4", .data_format = "NCHW"},
    {.op = GROUP_NORM, .in = "2,4,3,6", .attr = "0.5,3"},
    {.op = GROUP_NORM, .in = "2,6,4,3", .data_format = "NCHW", .attr = "0.001,2"},
    {.op = "prelu_grad_slope", .in = "2,3,5,4", .data_format = "NCHW", .attr = "3"},
    {.op = "prelu_grad_slope", .in = "2,5,4,3", .attr = "1"},
    {.op = "transpose", .in = "2,3,4", .attr = "1,2,0"},
    {.op = "transpose", .in = "2,3,4,5", .attr = "0,3,1,2"},
    {.op = "matmul", .in = "3,4", .filter = "4,5", .attr = "0,0"},
    {.op = "matmul", .in = "3,4", .filter = "5,4", .attr = "0,1"},
    {.op = "matmul", .in = "4,3", .filter = "4,5", .attr = "1,0"},
    {.op = "matmul", .in = "4,3", .filter = "5,4", .attr = "1,1"},
    {.op = REDUCE, .in = "2,3,4,5", .attr = "1,2,1"},
    {.op = REDUCE, .in = "2,3,4,5", .attr = "0,3,0"},
    {.op = REDUCE, .in = "2,3,4,5", .attr = "3,0"},
    {.op = REDUCE, .in = "11,3,4,5", .attr = "1,3,0"},
    {.op = "pad", .in = "2,3,4,5", .attr = "0,1,2,0,1,0,0,3"},
    {.op = "slice", .in = "4,5,6", .attr = "1,0,2,2,5,3"},
    {.op = "concat", .in = "2,3,4,5", .attr = "1"},
    {.op = "concat", .in = "2,3,4", .attr = "0"},
    {.op = "broadcast_to", .in = "3,1", .attr = "2,3,4"},
    {.op = "reshape", .in = "2,3,4", .attr = "4,6"},
    {.op = "softmax log_softmax", .in = "2,3,4,5"},
    {.op = "softmax log_softmax", .in = "3,70"},
    {.op = CROSS_ENTROPY, .attr = "0"},
    {.op = CROSS_ENTROPY, .attr = "0.4"},
    {.op = "momentum", .attr = "0.5,0.25"},
    {.op = "momentum", .attr = "0.75,0"},
    {.op = "sgd_step ema", .attr = "0.25"},
    {.op = "sgd_step", .attr = "0"},
    {.op = "adam_step", .attr = "0.5,0.75,0.01,0.25"},
    {.op = "dropout", .attr = "0.6,7"},
    {.op = "dropout", .attr = "0.25,7,1001"},
    {.op = "cast", .attr = "f16"},
    {.op = "cast", .attr = "bf16"},
    {.op = "scale", .attr = "-2"},
    {.op = "gelu gelu_grad", .attr = "1"},
    {.op = "clip clip_grad", .attr = "-1,0.25"},
    {.op = "clip clip_grad", .attr = "-2,-0.25"},
    {.op = "elu elu_grad", .attr = "1.5"},
    {.op = "leaky_relu leaky_relu_grad", .attr = "-0.5"},
    {.op = BINARY, .in = "3,25,20", .filter = "3,25,20"},
    {.op = BINARY, .in = "2,3,4", .filter = "3,1"},
    {.op = BINARY, .in = "1,4", .filter = "3,1"},
};

int op_attribute_set(const op_args *given, int i, op_args *out)
{
    if (op_args_given(given, "--dtype") != NULL)
        return 0;
    for (size_t k = 0; k < sizeof sets / sizeof *sets; k++) {
        if (word_index(sets[k].op, given->op) < 0 || i-- > 0)
            continue;
        *out = sets[k];
        out->op = given->op;
        out->dtype = given->dtype;
        return 1;
    }
    return 0;
}
