/* conformance_ops.c - the known keys of a case, since a case with an unknown key must not pass, as
 * that key would not be tested; and the ops of the cases: which arguments each takes. */
#include <stdio.h>
#include <string.h>

#include "conformance.h"
#include "ops/grad.h"

const json_t *case_read(conformance_case *c, const char *object, const char *key)
{
    if (c->n_read < CASE_READ)
        snprintf(c->read[c->n_read++], sizeof c->read[0], "%s.%s", object, key);
    return json_object_get(json_object_get(c->json, object), key);
}

static int is_listed(const char *const list[], const char *key)
{
    for (int i = 0; list[i] != NULL; i++)
        if (strcmp(list[i], key) == 0)
            return 1;
    return 0;
}

static int is_read(const conformance_case *c, const char *object, const char *key)
{
    char name[sizeof c->read[0]];
    snprintf(name, sizeof name, "%s.%s", object, key);
    for (int i = 0; i < c->n_read; i++)
        if (strcmp(c->read[i], name) == 0)
            return 1;
    return 0;
}

static void unknown(conformance_case *c, const char *object, const char *key)
{
    char name[100];
    snprintf(name, sizeof name, "%.40s%s%.50s", object, object[0] != '\0' ? "." : "", key);
    case_malformed(c, "unknown key", name);
}

static void check_tensor(conformance_case *c, const char *name, const json_t *tensor)
{
    static const char *const known[] = {"shape", "data", NULL};
    const char *key;
    const json_t *value;
    if (json_is_object(tensor))
        json_object_foreach((json_t *)tensor, key, value) if (!is_listed(known, key))
            unknown(c, name, key);
}

/* Checks that an object has the keys that the op used, and no others. */
static void check_object(conformance_case *c, const char *object)
{
    const char *key;
    const json_t *value;
    json_object_foreach(json_object_get(c->json, object), key, value)
    {
        if (!is_read(c, object, key))
            unknown(c, object, key);
        check_tensor(c, key, value);
    }
}

/* Objects by the names of inputs: a type or a gradient each. */
static void check_by_input(conformance_case *c, const char *object)
{
    const char *key;
    const json_t *value;
    json_object_foreach(json_object_get(c->json, object), key, value)
    {
        if (!is_read(c, "inputs", key) ||
            (json_is_object(value) &&
             !json_is_object(json_object_get(json_object_get(c->json, "inputs"), key))))
            unknown(c, object, key);
        check_tensor(c, key, value);
    }
}

static void check_scope(conformance_case *c)
{
    static const char *const known[] = {"kernel-limit", "cpu-only", "sensible", "quality", NULL};
    const json_t *scope = json_object_get(c->json, "scope");
    const char *word = json_string_value(scope);
    if (scope != NULL && (word == NULL || !is_listed(known, word)))
        case_malformed(c, "unknown scope", word != NULL ? word : "no word");
}

void case_check_keys(conformance_case *c)
{
    /* The second line is for people. gradient_of_op says what expected_grads shows. */
    static const char *const known[] = {"id",
                                        "op",
                                        "attrs",
                                        "inputs",
                                        "dtype",
                                        "dtypes",
                                        "rtol",
                                        "atol",
                                        "expected",
                                        "alt_expected",
                                        "expected_error",
                                        "alt_expected_error",
                                        "expected_grads",
                                        "gradient_of_op",
                                        "scope",
                                        "source",
                                        "expected_from",
                                        "note",
                                        "error_kind",
                                        "tf_status",
                                        "identity",
                                        NULL};
    const char *key, *second = c->second.expected;
    const json_t *value;
    json_object_foreach((json_t *)c->json, key, value)
    {
        if (!is_listed(known, key) && (second == NULL || strcmp(key, second) != 0))
            unknown(c, "", key);
        if (strstr(key, "expected") != NULL && strcmp(key, "expected_grads") != 0)
            check_tensor(c, key, value);
    }
    check_object(c, "inputs");
    check_object(c, "attrs");
    check_by_input(c, "dtypes");
    check_by_input(c, "expected_grads");
    check_scope(c);
    if (json_is_true(json_object_get(c->json, "gradient_of_op")) &&
        json_object_get(c->json, "expected_grads") == NULL)
        case_malformed(c, "gradient_of_op without", "expected_grads");
}

/* ---- ops ---- */

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
