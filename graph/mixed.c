/* mixed.c - the pass that makes a graph of f32 one of mixed precision.
 *
 * A node's image has one of two types, f32 or half. Readers that want the other one read a cast of
 * it; equal casts are one node. Convolutions and matmuls take half operands; activations and what
 * moves data follow their operands; anything else reads f32. Parameters stay f32: what a
 * convolution reads is a cast of its filter. */
#include "graph.h"

static adj_node *in_type(adj_graph *to, adj_node *x, adj_dtype dtype)
{
    double value;
    if (x == NULL || x->type.dtype == dtype)
        return x;
    if (x->op == &adj_op_cast && x->in[0]->type.dtype == dtype && dtype != ADJ_F32)
        return x->in[0]; /* it was widened: nothing is lost */
    if (adj_is_fill(x, &value))
        return adj_fill(to, dtype, x->type.shape, value);
    return adj_cast(x, dtype);
}

adj_node *widened(adj_graph *to, adj_node *x, adj_dtype wanted)
{
    return adj_is_float(wanted) ? in_type(to, x, wanted) : x;
}

/* May operand k of n be of the half type? */
static int may_be_half(const adj_node *n, int k)
{
    unsigned mask = n->op->half_in;
    return n->in[k]->type.dtype == ADJ_F32 && (mask == 0 || (k < 32 && (mask >> k & 1)));
}

/* Are n's largest operands half, so that it costs no cast of large values to follow them? */
static int follows(const adj_node *n, adj_node *const in[], adj_dtype half)
{
    int64_t most = 0;
    int n_half = 0;
    double any;
    for (int k = 0; k < n->n_in; k++)
        if (may_be_half(n, k) && adj_shape_elems(n->in[k]->type.shape) > most)
            most = adj_shape_elems(n->in[k]->type.shape);
    for (int k = 0; k < n->n_in; k++) {
        if (!may_be_half(n, k) || adj_shape_elems(n->in[k]->type.shape) < most)
            continue;
        if (in[k]->type.dtype != half && !adj_is_fill(in[k], &any))
            return 0;
        n_half += in[k]->type.dtype == half;
    }
    return n_half > 0;
}

static adj_node *mixed(adj_graph *to, const adj_node *n, adj_node *const in[], adj_dtype half)
{
    unsigned flags = n->op->flags;
    int is_half = (flags & ADJ_OP_HALF_ALWAYS) != 0;
    adj_node **operand = adj_graph_alloc(to, (size_t)(n->n_in + 1) * sizeof *operand);
    if (operand == NULL)
        return NULL;
    if (flags & ADJ_OP_HALF)
        is_half = n->role != ADJ_ROLE_UPDATE && follows(n, in, half);
    for (int k = 0; k < n->n_in; k++) {
        adj_dtype type = n->in[k]->type.dtype;
        operand[k] = widened(to, in[k], is_half && may_be_half(n, k) ? half : type);
    }
    adj_node *y = adj_node_new(to, n->op, n->n_in, operand, n->attrs);
    return flags & ADJ_OP_HALF_SUM ? widened(to, y, n->type.dtype) : y;
}

adj_node *rule_bf16(rewriting *w, const adj_node *n, adj_node *const in[])
{
    return mixed(w->to, n, in, ADJ_BF16);
}
