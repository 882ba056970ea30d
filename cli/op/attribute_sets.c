/* attribute_sets.c - see variants.h: shapes, and attributes that go with them. Default values may
 * hide a fault: equal sizes, the same window in both directions. adj_node_variant has the values
 * that need no other shapes. */
#include "variants.h"

/* Ops that take the same sets. */
#define CONV                                                                                       \
    "conv2d conv2d_backprop_input conv2d_backprop_filter depthwise_conv2d_native "                 \
    "depthwise_conv2d_native_backprop_input depthwise_conv2d_native_backprop_filter"
#define POOL "max_pool max_pool_grad max_pool_grad_grad avg_pool avg_pool_grad"
#define REDUCE "reduce_sum reduce_mean reduce_max"
#define BINARY "add sub mul div maximum minimum equal greater_equal"
#define CHANNELS                                                                                   \
    "batch_norm batch_norm_grad batch_norm_grad_sums bias_add bias_add_grad batch_norm_stats "     \
    "prelu prelu_grad"
#define GROUP_NORM "group_norm group_norm_grad group_norm_grad_sums"
#define RESIZE "resize resize_grad"

/* Sets of options; op: names of the ops that use the set. */
static const struct {
    const char *op, *in, *filter, *attr;
} sets[] = {
    {CONV, "2,9,8,4", "3,2,4,6", "strides=1,2,1,1"},
    {CONV, "2,9,8,4", "3,3,4,6", "dilations=1,2,2,1"},
    {CONV, "2,9,8,4", "2,3,4,6", "strides=1,1,2,1,padding=VALID"},
    {CONV, "2,9,8,4", "3,3,4,6", "padding=EXPLICIT,explicit_paddings=0,0,2,1,0,1,0,0"},
    {CONV, "2,4,9,8", "3,2,4,6", "strides=1,1,2,2,data_format=NCHW"},
    {"conv2d conv2d_backprop_input conv2d_backprop_filter", "2,9,8,4", "3,3,2,6", NULL},
    {POOL, "2,9,8,3", NULL, "ksize=1,3,2,1,strides=1,2,1,1"},
    {POOL, "2,9,8,3", NULL, "ksize=1,2,3,1,strides=1,1,2,1,padding=VALID"},
    {POOL, "2,3,9,8", NULL, "ksize=1,1,3,3,strides=1,1,2,2,data_format=NCHW"},
    {RESIZE, "2,5,4,3", NULL, "height=9,width=7,mode=nearest,coordinates=asymmetric"},
    {RESIZE, "2,5,4,3", NULL, "height=9,width=7,coordinates=align_corners"},
    {RESIZE, "2,5,4,3", NULL, "height=3,width=3,coordinates=asymmetric"},
    {RESIZE, "2,3,5,4", NULL,
     "height=9,width=7,mode=nearest,coordinates=align_corners,data_format=NCHW"},
    {"batch_norm batch_norm_grad_sums", NULL, NULL, "stats=0"}, /* running statistics */
    {"batch_norm batch_norm_grad_sums", NULL, NULL, "stats=2"}, /* of another tensor */
    {"batch_norm_grad", NULL, NULL, "sums=1"},
    {CHANNELS, "2,3,5,4", NULL, "data_format=NCHW"},
    {GROUP_NORM, "2,4,3,6", NULL, "epsilon=0.5,groups=3"},
    {GROUP_NORM, "2,6,4,3", NULL, "groups=2,data_format=NCHW"},
    {"prelu_grad_slope", "2,3,5,4", NULL, "slopes=3,data_format=NCHW"},
    {"prelu_grad_slope", "2,5,4,3", NULL, "slopes=1"},
    {"matmul", "3,4", "4,5", "transpose_a=0"},
    {"matmul", "3,4", "5,4", "transpose_b=1"},
    {"matmul", "4,3", "4,5", "transpose_a=1"},
    {"matmul", "4,3", "5,4", "transpose_a=1,transpose_b=1"},
    {REDUCE, "2,3,4,5", NULL, "axes=1,2,keep_dims=1"},
    {REDUCE, "11,3,4,5", NULL, "axes=1,3"},
    {"argmax", "2,3,4,5", NULL, "axis=1"},
    {"pad", "2,3,4,5", NULL, "before=0,1,2,0,after=1,0,0,3"},
    {"slice", "4,5,6", NULL, "begin=1,0,2,size=2,5,3"},
    {"concat", "2,3,4,5", "2,1,4,5", "axis=1"},
    {"concat", "2,3,4", "5,3,4", "axis=0"},
    {"concat", "2,3,4,5", "2,3,4,9", "axis=3"},
    {"broadcast_to", "3,1", NULL, "shape=2,3,4"},
    {"broadcast_to", "2,1,4,1", NULL, "shape=2,3,4,5"},
    {"broadcast_to", "scalar", NULL, "shape=2,3"},
    {"reshape", "2,3,4", NULL, "shape=4,6"},
    {"softmax log_softmax", "2,3,4,5", NULL, NULL},
    {"softmax log_softmax", "3,70", NULL, NULL},
    {BINARY, "3,25,20", "3,25,20", NULL},
    {BINARY, "2,3,4", "3,1", NULL},
    {BINARY, "1,5", "3,1,1,5", NULL},
    {BINARY, "2,3,4,5", "1,3,4,5", NULL},
    {BINARY, "2,3,4,5", "2,1,4,1", NULL},
    {BINARY, "scalar", "2,3", NULL},
    {BINARY " pow", "2,3,4", "same", NULL},
    {"matmul", "4,4", "same", "transpose_b=1"},
    {"concat", "2,3,4", "same", "axis=1"},
};

int op_attribute_set(const op_args *given, int i, op_args *out)
{
    if (op_args_given(given, "--dtype") != NULL)
        return 0;
    for (size_t k = 0; k < sizeof sets / sizeof *sets; k++) {
        if (word_index(sets[k].op, given->op) < 0 || i-- > 0)
            continue;
        *out = (op_args){.op = given->op,
                         .in = sets[k].in,
                         .filter = sets[k].filter,
                         .attr = sets[k].attr,
                         .dtype = given->dtype};
        return 1;
    }
    return 0;
}
