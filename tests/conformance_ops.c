/* conformance_ops.c - the ops of the conformance cases: which arguments each takes. */
#include <string.h>

#include "conformance.h"
#include "ops/grad.h"

static adj_node *conv2d(conformance_case *c)
{
    adj_conv a;
    adj_node *x = case_tensor(c, "input"), *w = case_tensor(c, "filter");
    return case_conv(c, &a) ? adj_conv2d(x, w, &a) : NULL;
}

static adj_node *conv2d_backprop_input(conformance_case *c)
{
    adj_conv a;
    adj_shape sizes = case_sizes(c, "input_sizes");
    adj_node *w = case_tensor(c, "filter"), *dy = case_tensor(c, "out_backprop");
    return case_conv(c, &a) ? adj_conv2d_backprop_input(sizes, w, dy, &a) : NULL;
}

static adj_node *conv2d_backprop_filter(conformance_case *c)
{
    adj_conv a;
    adj_shape sizes = case_sizes(c, "filter_sizes");
    adj_node *x = case_tensor(c, "input"), *dy = case_tensor(c, "out_backprop");
    return case_conv(c, &a) ? adj_conv2d_backprop_filter(x, sizes, dy, &a) : NULL;
}

static adj_node *depthwise(conformance_case *c)
{
    adj_conv a;
    adj_node *x = case_tensor(c, "input"), *w = case_tensor(c, "filter");
    return case_conv(c, &a) ? adj_depthwise_conv2d_native(x, w, &a) : NULL;
}

static adj_node *depthwise_backprop_input(conformance_case *c)
{
    adj_conv a;
    adj_shape sizes = case_sizes(c, "input_sizes");
    adj_node *w = case_tensor(c, "filter"), *dy = case_tensor(c, "out_backprop");
    return case_conv(c, &a) ? adj_depthwise_conv2d_native_backprop_input(sizes, w, dy, &a) : NULL;
}

static adj_node *depthwise_backprop_filter(conformance_case *c)
{
    adj_conv a;
    adj_shape sizes = case_sizes(c, "filter_sizes");
    adj_node *x = case_tensor(c, "input"), *dy = case_tensor(c, "out_backprop");
    return case_conv(c, &a) ? adj_depthwise_conv2d_native_backprop_filter(x, sizes, dy, &a) : NULL;
}

static adj_node *conv2d_transpose(conformance_case *c)
{
    adj_conv a;
    adj_shape sizes = case_sizes(c, "output_shape");
    adj_node *x = case_tensor(c, "input"), *w = case_tensor(c, "filter");
    return case_conv(c, &a) ? adj_conv2d_transpose(x, w, sizes, &a) : NULL;
}

static adj_node *separable_conv2d(conformance_case *c)
{
    adj_conv a;
    adj_node *x = case_tensor(c, "input"), *depth = case_tensor(c, "depthwise_filter"),
             *point = case_tensor(c, "pointwise_filter");
    return case_conv(c, &a) ? adj_separable_conv2d(x, depth, point, &a) : NULL;
}

static adj_node *max_pool(conformance_case *c)
{
    adj_pool a;
    adj_node *x = case_tensor(c, "input");
    return case_pool(c, &a) ? adj_max_pool(x, &a) : NULL;
}

static adj_node *avg_pool(conformance_case *c)
{
    adj_pool a;
    adj_node *x = case_tensor(c, "input");
    return case_pool(c, &a) ? adj_avg_pool(x, &a) : NULL;
}

static adj_node *max_pool_grad(conformance_case *c)
{
    adj_pool a;
    adj_node *x = case_tensor(c, "orig_input"), *y = case_tensor(c, "orig_output"),
             *dy = case_tensor(c, "grad");
    return case_pool(c, &a) ? adj_max_pool_grad(x, y, dy, &a) : NULL;
}

static adj_node *avg_pool_grad(conformance_case *c)
{
    adj_pool a;
    adj_shape sizes = case_sizes(c, "orig_input_shape");
    adj_node *dy = case_tensor(c, "grad");
    return case_pool(c, &a) ? adj_avg_pool_grad(sizes, dy, &a) : NULL;
}

static adj_node *relu_grad(conformance_case *c)
{
    adj_node *dy = case_tensor(c, "gradients"), *y = case_tensor(c, "features");
    return adj_relu_grad(dy, y);
}

static adj_node *bias_add_grad(conformance_case *c)
{
    adj_format format;
    adj_node *dy = case_tensor(c, "out_backprop");
    return case_format(c, &format) ? adj_bias_add_grad(dy, format) : NULL;
}

/* TensorFlow broadcasts features and labels to one shape; here that is a node of its own. */
static adj_node *stretched(adj_node *x, const adj_node *other)
{
    adj_shape shape = adj_node_type(x).shape, wide = adj_node_type(other).shape;
    int narrow = 0;
    for (int i = 0; x != NULL && shape.rank == wide.rank && i < shape.rank; i++)
        if (shape.dim[i] == 1 && wide.dim[i] != 1) {
            shape.dim[i] = wide.dim[i];
            narrow = 1;
        }
    return narrow ? adj_broadcast_to(x, shape) : x;
}

static adj_node *softmax_cross_entropy(conformance_case *c)
{
    adj_node *features = case_tensor(c, "features"), *labels = case_tensor(c, "labels");
    adj_node *x = stretched(features, labels), *t = stretched(labels, features);
    c->second = (second_result){adj_softmax_cross_entropy_grad(x, t, 0), "expected_backprop",
                                "grad_output_backprop", "labels"};
    return adj_softmax_cross_entropy(x, t, 0);
}

static const struct {
    const char *name;
    adj_node *(*build)(conformance_case *c);
} ops[] = {
    {"conv2d", conv2d},
    {"conv2d_backprop_input", conv2d_backprop_input},
    {"conv2d_backprop_filter", conv2d_backprop_filter},
    {"depthwise_conv2d_native", depthwise},
    {"depthwise_conv2d_native_backprop_input", depthwise_backprop_input},
    {"depthwise_conv2d_native_backprop_filter", depthwise_backprop_filter},
    {"conv2d_transpose", conv2d_transpose},
    {"separable_conv2d", separable_conv2d},
    {"max_pool", max_pool},
    {"avg_pool", avg_pool},
    {"max_pool_grad", max_pool_grad},
    {"avg_pool_grad", avg_pool_grad},
    {"relu_grad", relu_grad},
    {"bias_add_grad", bias_add_grad},
    {"softmax_cross_entropy_with_logits", softmax_cross_entropy},
};

/* The gradients of a result that the input of this name arrives at. 0: there is none. */
static int backward(conformance_case *c, adj_node *y, const char *incoming, int n,
                    adj_node *dx[CASE_TENSORS])
{
    if (incoming == NULL || json_object_get(json_object_get(c->json, "inputs"), incoming) == NULL)
        return 0;
    adj_node *dy = case_tensor(c, incoming);
    if (y != NULL && dy != NULL)
        adj_grad(y, dy, n, c->tensor, dx);
    return 1;
}

/* expected_grads: the gradients with respect to the tensor inputs, grad_output arriving at y and
 * the like at a second result; or one of them. */
static void add_gradients(conformance_case *c, adj_node *y, const json_t *wanted)
{
    int n = c->n_tensor;
    adj_node *dx[CASE_TENSORS] = {NULL}, *more[CASE_TENSORS] = {NULL};
    int first = backward(c, y, "grad_output", n, dx);
    int second = backward(c, c->second.node, c->second.incoming, n, more);
    if (!first && !second)
        case_malformed(c, "no gradient arrives", "grad_output");
    for (int i = 0; i < n; i++) {
        const char *name = c->tensor_name[i];
        const json_t *want = json_object_get(wanted, name);
        if (!json_is_object(want))
            continue;
        adj_node *sum = first && second ? adj_add(dx[i], more[i]) : first ? dx[i] : more[i];
        case_add_result(c, sum, want, name);
        if (first && second && strcmp(c->second.forgets, name) == 0)
            c->result[c->n_result - 1].other = dx[i];
    }
}

/* Whatever the case says of values and of gradients is wanted. */
static void add_results(conformance_case *c, adj_node *y)
{
    const json_t *wanted = json_object_get(c->json, "expected_grads");
    const json_t *expected = json_object_get(c->json, "expected");
    if (c->second.expected != NULL && json_object_get(c->json, c->second.expected) != NULL)
        case_add_result(c, c->second.node, json_object_get(c->json, c->second.expected),
                        c->second.expected);
    if (wanted != NULL)
        add_gradients(c, y, wanted);
    if (expected != NULL || wanted == NULL)
        case_add_result(c, y, expected, "output");
}

void case_build(conformance_case *c)
{
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(ops[i].name, c->op) == 0) {
            adj_node *y = ops[i].build(c);
            add_results(c, y);
            return;
        }
    case_malformed(c, "unknown op", c->op);
}
