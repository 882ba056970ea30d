/* rewrite.c - a node as a configuration wants it: another float type, another data format.
 *
 * The values stay comparable one by one: an op in the other format reads transposed operands and
 * its result is transposed back, so every node's image has the node's own shape. */
#include <string.h>

#include "compare.h"

adj_dtype config_dtype(const adj_compare_config *c, adj_dtype dtype)
{
    return c->has_dtype && adj_is_float(dtype) ? c->dtype : dtype;
}

/* ---- element types ---- */

static adj_node *rebuild_const(const adj_compare_config *c, adj_graph *to, const adj_node *n)
{
    const adj_const_attrs *a = n->attrs;
    adj_dtype from = (adj_dtype)a->dtype, dtype = config_dtype(c, from);
    int64_t elems = adj_shape_elems(a->shape);
    void *data = adj_graph_alloc(to, (size_t)elems * adj_dtype_size(dtype));
    if (data == NULL)
        return NULL;
    adj_convert(from, a->data, dtype, data, elems);
    return adj_const(to, dtype, a->shape, data);
}

/* ---- data formats ---- */

enum { MAX_OPERANDS = 8 }; /* of an op on images, or with statistics */
static const int to_nchw[] = {0, 3, 1, 2}, to_nhwc[] = {0, 2, 3, 1};

/* The op in the other format between transposes; NULL without an error if n is not such an op. */
static adj_node *reformat(const adj_compare_config *c, adj_graph *to, const adj_node *n,
                          adj_node *const in[], void *attrs)
{
    const unsigned images = n->op->images;
    adj_node *operand[MAX_OPERANDS];
    if (n->n_in > MAX_OPERANDS || !adj_set_format(n, attrs, c->format))
        return NULL;
    const int *there = c->format == ADJ_NCHW ? to_nchw : to_nhwc;
    const int *back = c->format == ADJ_NCHW ? to_nhwc : to_nchw;
    for (int k = 0; k < n->n_in; k++)
        operand[k] = images >> k & 1 ? adj_transpose(in[k], 4, there) : in[k];
    adj_node *y = adj_node_new(to, n->op, n->n_in, operand, attrs);
    return images & ADJ_IMAGE_RESULT ? adj_transpose(y, 4, back) : y;
}

static adj_node *rebuild(const adj_compare_config *c, adj_graph *to, const adj_node *n,
                         adj_node *const in[])
{
    _Alignas(16) char attrs[MAX_ATTR];
    if (n->op->schema == NULL)
        return adj_node_new(to, n->op, n->n_in, in, NULL);
    memcpy(attrs, n->attrs, adj_attr_size(n->op));
    if (c->has_dtype && n->op->flags & ADJ_OP_TYPED)
        *(int64_t *)(void *)attrs = config_dtype(c, (adj_dtype) * (int64_t *)(void *)attrs);
    if (c->has_format) {
        adj_node *y = reformat(c, to, n, in, attrs);
        if (y != NULL || adj_graph_status(to) != ADJ_OK)
            return y;
    }
    return adj_node_new(to, n->op, n->n_in, in, attrs);
}

/* Every float is of the configuration's type, but what an op with half operands takes in f32 beside
 * them (batch norm's statistics and parameters), and makes so: casts stand around it. */
adj_node *config_rule(const adj_compare_config *c, adj_graph *to, const adj_node *n,
                      adj_node *const in[])
{
    adj_node *wide[MAX_OPERANDS] = {NULL};
    int is_half = c->has_dtype && adj_is_half(c->dtype);
    if (n->op == &adj_op_const)
        return rebuild_const(c, to, n);
    if (is_half && (n->op->flags & ADJ_OP_HALF_IMAGES) && n->n_in <= MAX_OPERANDS) {
        for (int k = 0; k < n->n_in; k++)
            wide[k] = has_half_operand(n->op, k) || !adj_is_float(n->in[k]->type.dtype)
                          ? in[k]
                          : adj_cast(in[k], ADJ_F32);
        in = wide;
    }
    adj_node *y = rebuild(c, to, n, in);
    if (y != NULL && y->type.dtype != config_dtype(c, n->type.dtype))
        y = adj_cast(y, config_dtype(c, n->type.dtype));
    return y;
}
