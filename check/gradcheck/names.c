/* names.c - what operands and their axes are called in a report. Ops that are not listed
 * have the operands x0, x1, ... and axes named by rank alone. */
#include <string.h>

#include "gradcheck.h"

enum { MAX = 5, NO_FILTER = -1 };

typedef struct {
    const adj_op *op;
    int filter; /* which operand is one: its axes are [kh, kw, in, out] */
    const char *operand[MAX];
} names;

static const names known[] = {
    {&adj_op_conv2d, 1, {"input", "filter"}},
    {&adj_op_conv2d_backprop_input, 0, {"filter", "out_backprop"}},
    {&adj_op_conv2d_backprop_filter, NO_FILTER, {"input", "out_backprop"}},
    {&adj_op_depthwise_conv2d_native, 1, {"input", "filter"}},
    {&adj_op_depthwise_conv2d_native_backprop_input, 0, {"filter", "out_backprop"}},
    {&adj_op_depthwise_conv2d_native_backprop_filter, NO_FILTER, {"input", "out_backprop"}},
    {&adj_op_bias_add, NO_FILTER, {"input", "bias"}},
    {&adj_op_bias_add_grad, NO_FILTER, {"out_backprop"}},
    {&adj_op_matmul, NO_FILTER, {"a", "b"}},
    {&adj_op_max_pool, NO_FILTER, {"input"}},
    {&adj_op_max_pool_grad, NO_FILTER, {"orig_input", "orig_output", "grad"}},
    {&adj_op_max_pool_grad_grad, NO_FILTER, {"orig_input", "orig_output", "grad"}},
    {&adj_op_avg_pool, NO_FILTER, {"input"}},
    {&adj_op_avg_pool_grad, NO_FILTER, {"grad"}},
    {&adj_op_batch_norm_stats, NO_FILTER, {"x"}},
    {&adj_op_batch_norm, NO_FILTER, {"x", "stats", "gamma", "beta"}},
    {&adj_op_batch_norm_grad_sums, NO_FILTER, {"x", "stats", "dy"}},
    {&adj_op_batch_norm_grad, NO_FILTER, {"x", "stats", "gamma", "dy", "sums"}},
    {&adj_op_softmax_cross_entropy, NO_FILTER, {"logits", "labels"}},
    {&adj_op_softmax_cross_entropy_grad, NO_FILTER, {"logits", "labels"}},
    {&adj_op_sparse_softmax_cross_entropy, NO_FILTER, {"logits", "labels"}},
    {&adj_op_sparse_softmax_cross_entropy_grad, NO_FILTER, {"logits", "labels"}},
    {&adj_op_dropout, NO_FILTER, {"x", "step"}},
    {&adj_op_relu_grad, NO_FILTER, {"dy", "y"}},
    {&adj_op_relu6_grad, NO_FILTER, {"dy", "y"}},
    {&adj_op_leaky_relu_grad, NO_FILTER, {"dy", "y"}},
    {&adj_op_sigmoid_grad, NO_FILTER, {"dy", "y"}},
    {&adj_op_tanh_grad, NO_FILTER, {"dy", "y"}},
    {&adj_op_silu_grad, NO_FILTER, {"dy", "x"}},
};

/* An op of one's own that stands for a built-in one is known by its shape rule. */
static const names *find(const adj_op *op)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].op == op)
            return &known[i];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].op->infer == op->infer && known[i].op->min_in == op->min_in &&
            known[i].op->attr_size == op->attr_size)
            return &known[i];
    return NULL;
}

static int has_operand(const names *of, const char *name)
{
    for (int i = 0; of != NULL && i < MAX; i++)
        if (of->operand[i] != NULL && strcmp(of->operand[i], name) == 0)
            return 1;
    return 0;
}

const char *operand_name(const adj_node *n, int operand)
{
    static const char *const plain[] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"};
    const names *of = find(n->op);
    if (operand < 0)
        return has_operand(of, "dy") ? "upstream" : "dy";
    if (of != NULL && operand < MAX && of->operand[operand] != NULL)
        return of->operand[operand];
    if (n->n_in == 1)
        return "x";
    return operand < 8 ? plain[operand] : "x..";
}

int leaf_is_filter(const subject *s, int leaf)
{
    const names *of = find(s->node->op);
    return of != NULL && s->slot[leaf] >= 0 && of->filter == s->slot[leaf];
}

int names_images(const adj_node *n)
{
    return find(n->op) != NULL && (n->op->attr_size == sizeof(adj_conv_attrs) ||
                                   n->op->attr_size == sizeof(adj_pool_attrs));
}

static int is_depthwise(const adj_node *n)
{
    const adj_op *op = find(n->op)->op;
    return op == &adj_op_depthwise_conv2d_native ||
           op == &adj_op_depthwise_conv2d_native_backprop_input;
}

/* Does the op say NCHW? */
static int is_channels_first(const adj_node *n)
{
    const names *of = find(n->op);
    if (of == NULL)
        return 0;
    if (n->op->attr_size == sizeof(adj_conv_attrs))
        return ((const adj_conv_attrs *)n->attrs)->conv.format == ADJ_NCHW;
    if (n->op->attr_size == sizeof(adj_pool_attrs))
        return ((const adj_pool_attrs *)n->attrs)->pool.format == ADJ_NCHW;
    return 0;
}

char axis_name(const subject *s, int leaf, int axis)
{
    int rank = (int)s->tested.leaf[leaf]->type.shape.rank;
    if (rank == 4 && leaf_is_filter(s, leaf))
        return is_depthwise(s->node) ? "hwcm"[axis] : "hwco"[axis];
    if (rank == 4)
        return is_channels_first(s->node) ? "nchw"[axis] : "nhwc"[axis];
    return "ijklmn"[axis];
}

const char *index_text(const subject *s, int leaf, int64_t element)
{
    adj_shape shape = s->tested.leaf[leaf]->type.shape;
    int64_t at[ADJ_MAX_RANK];
    char text[ADJ_MAX_RANK * 24] = "[";

    if (shape.rank == 0)
        return "";
    for (int64_t i = shape.rank - 1; i >= 0; i--) {
        at[i] = element % shape.dim[i];
        element /= shape.dim[i];
    }
    for (int i = 0; i < shape.rank; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%c=%lld", i > 0 ? "," : "",
                 axis_name(s, leaf, i), (long long)at[i]);
    }
    return gradcheck_text(s->report, "%s]", text);
}
