/* rewrite.c - a node as a configuration wants it: another float type, another data format.
 *
 * The values stay comparable one by one: an op in the other format reads transposed operands and
 * its result is transposed back, so every node's image has the node's own shape. */
#include <string.h>

#include "compare.h"

adj_dtype config_dtype(const adj_config *c, adj_dtype dtype)
{
    return c->has_dtype && adj_is_float(dtype) ? c->dtype : dtype;
}

/* ---- element types ---- */

static adj_node *rebuild_const(const adj_config *c, adj_graph *to, const adj_node *n)
{
    const adj_const_attrs *a = n->attrs;
    adj_dtype from = (adj_dtype)a->dtype, dtype = config_dtype(c, from);
    int64_t elems = adj_shape_elems(a->shape);
    void *data = adj_graph_alloc(to, (size_t)elems * adj_dtype_size(dtype));
    if (data == NULL)
        return NULL;
    for (int64_t i = 0; i < elems; i++)
        adj_store(dtype, data, i, adj_load(from, a->data, i));
    return adj_const(to, dtype, a->shape, data);
}

/* A copy of n's attributes with the configuration's element type. */
static void change_dtype(const adj_config *c, const adj_node *n, void *attrs)
{
    int64_t *dtype = NULL; /* the first member of all of these */
    if (n->op == &adj_op_input || n->op == &adj_op_param || n->op == &adj_op_state)
        dtype = &((adj_leaf_attrs *)attrs)->dtype;
    else if (n->op == &adj_op_fill)
        dtype = &((adj_fill_attrs *)attrs)->dtype;
    else if (n->op == &adj_op_cast || strcmp(n->op->name, "label_count") == 0)
        dtype = &((adj_dtype_attrs *)attrs)->dtype;
    if (dtype != NULL)
        *dtype = config_dtype(c, (adj_dtype)*dtype);
}

/* ---- data formats ---- */

enum { RESULT = 1 << 8 }; /* the result is an activation; bit i: operand i is */
enum { MAX_STATS = 8 };   /* operands of a batch norm */
typedef enum { CONV, POOL, FORMAT, BATCH_NORM } attr_kind;
static const struct {
    const adj_op *op;
    attr_kind kind;
    unsigned activations;
} formatted[] = {
    {&adj_op_conv2d, CONV, 1 | RESULT},
    {&adj_op_conv2d_backprop_input, CONV, 2 | RESULT},
    {&adj_op_conv2d_backprop_filter, CONV, 3},
    {&adj_op_depthwise_conv2d_native, CONV, 1 | RESULT},
    {&adj_op_depthwise_conv2d_native_backprop_input, CONV, 2 | RESULT},
    {&adj_op_depthwise_conv2d_native_backprop_filter, CONV, 3},
    {&adj_op_max_pool, POOL, 1 | RESULT},
    {&adj_op_max_pool_grad, POOL, 7 | RESULT},
    {&adj_op_max_pool_grad_grad, POOL, 7 | RESULT},
    {&adj_op_avg_pool, POOL, 1 | RESULT},
    {&adj_op_avg_pool_grad, POOL, 1 | RESULT},
    {&adj_op_bias_add, FORMAT, 1 | RESULT},
    {&adj_op_bias_add_grad, FORMAT, 1},
    {&adj_op_batch_norm_stats, FORMAT, 1},
    {&adj_op_batch_norm, BATCH_NORM, 1 | RESULT},
    {&adj_op_batch_norm_grad_sums, BATCH_NORM, 1 | 4},
    {&adj_op_batch_norm_grad, BATCH_NORM, 1 | 8 | RESULT},
};
enum { N_FORMATTED = sizeof formatted / sizeof *formatted };

static const int to_nchw[] = {0, 3, 1, 2}, to_nhwc[] = {0, 2, 3, 1};

static int row_of(const adj_node *n)
{
    int i = 0;
    while (i < N_FORMATTED && formatted[i].op != n->op)
        i++;
    return i;
}

static void permute4(int64_t v[4], const int perm[4])
{
    const int64_t old[] = {v[0], v[1], v[2], v[3]};
    for (int i = 0; i < 4; i++)
        v[i] = old[perm[i]];
}

static void permute_pads(int64_t pad[4][2], const int perm[4])
{
    int64_t old[4][2];
    memcpy(old, pad, sizeof old);
    for (int i = 0; i < 4; i++)
        memcpy(pad[i], old[perm[i]], sizeof pad[i]);
}

/* Turns the attributes into those of the other format; 0 if they have this format already. */
static int change_format(attr_kind kind, adj_format format, void *attrs)
{
    const int *perm = format == ADJ_NCHW ? to_nchw : to_nhwc;
    if (kind == CONV) {
        adj_conv_attrs *a = attrs;
        if (a->conv.format == format)
            return 0;
        permute4(a->conv.stride, perm);
        permute4(a->conv.dilation, perm);
        permute_pads(a->conv.pad, perm);
        a->conv.format = format;
        a->geom.format = format;
        return 1;
    }
    if (kind == POOL) {
        adj_pool_attrs *a = attrs;
        if (a->pool.format == format)
            return 0;
        permute4(a->pool.ksize, perm);
        permute4(a->pool.stride, perm);
        permute_pads(a->pool.pad, perm);
        a->pool.format = format;
        a->geom.format = format;
        return 1;
    }
    int64_t *f = kind == FORMAT ? &((adj_format_attrs *)attrs)->format
                                : &((adj_batch_norm_attrs *)attrs)->format;
    if (*f == (int64_t)format)
        return 0;
    *f = (int64_t)format;
    return 1;
}

/* The op in the other format between transposes; NULL without an error if n is not such an op. */
static adj_node *reformat(const adj_config *c, adj_graph *to, const adj_node *n,
                          adj_node *const in[], void *attrs)
{
    int i = row_of(n);
    if (i == N_FORMATTED ||
        n->in[0]->type.shape.rank < 4 - (n->op == &adj_op_conv2d_backprop_input))
        return NULL;
    for (int k = 0; k < n->n_in; k++)
        if ((formatted[i].activations & 1u << k) && n->in[k]->type.shape.rank != 4)
            return NULL;
    if (!change_format(formatted[i].kind, c->format, attrs))
        return NULL;
    const int *there = c->format == ADJ_NCHW ? to_nchw : to_nhwc;
    const int *back = c->format == ADJ_NCHW ? to_nhwc : to_nchw;
    adj_node *operand[8];
    for (int k = 0; k < n->n_in; k++)
        operand[k] = formatted[i].activations & 1u << k ? adj_transpose(in[k], there) : in[k];
    adj_node *y = adj_node_new(to, n->op, n->n_in, operand, attrs);
    return formatted[i].activations & RESULT ? adj_transpose(y, back) : y;
}

static adj_node *rebuild(const adj_config *c, adj_graph *to, const adj_node *n,
                         adj_node *const in[])
{
    _Alignas(16) char attrs[MAX_ATTR];
    if (n->op->attr_size == 0)
        return adj_node_new(to, n->op, n->n_in, in, NULL);
    memcpy(attrs, n->attrs, n->op->attr_size);
    if (c->has_dtype)
        change_dtype(c, n, attrs);
    if (c->has_format) {
        adj_node *y = reformat(c, to, n, in, attrs);
        if (y != NULL || adj_graph_status(to) != ADJ_OK)
            return y;
    }
    return adj_node_new(to, n->op, n->n_in, in, attrs);
}

/* Every float is of the configuration's type, but batch norm reads and makes statistics in f32
 * where x is half: casts stand around it. */
adj_node *config_rule(const adj_config *c, adj_graph *to, const adj_node *n, adj_node *const in[])
{
    adj_node *wide[MAX_STATS];
    int i = row_of(n);
    if (n->op == &adj_op_const)
        return rebuild_const(c, to, n);
    if (c->has_dtype && (c->dtype == ADJ_F16 || c->dtype == ADJ_BF16) && i < N_FORMATTED &&
        formatted[i].kind == BATCH_NORM) {
        for (int k = 0; k < n->n_in; k++)
            wide[k] = formatted[i].activations & 1u << k ? in[k] : adj_cast(in[k], ADJ_F32);
        in = wide;
    }
    adj_node *y = rebuild(c, to, n, in);
    if (y != NULL && y->type.dtype != config_dtype(c, n->type.dtype))
        y = adj_cast(y, config_dtype(c, n->type.dtype));
    return y;
}
