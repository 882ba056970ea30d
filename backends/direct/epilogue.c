/* epilogue.c - recognizes the nodes of an epilogue: see epilogue.h. */
#include "epilogue.h"

int direct_is_bias_of(const adj_node *n, const adj_node *root)
{
    return n->op == &adj_op_bias_add && n->in[0] == root &&
           (root->type.shape.rank == 2 || adj_format_of(n) == ADJ_NHWC);
}

int direct_match_bias(const adj_node *root, const adj_uses *uses, int max, const adj_node **group)
{
    const adj_node *user = adj_only_user(root, uses);
    if (max < 1)
        return 0;
    group[0] = root;
    if (max < 2 || user == NULL || !direct_is_bias_of(user, root))
        return 1;
    group[1] = user;
    return 2;
}

int direct_is_widening(const adj_node *n)
{
    return n->op == &adj_op_cast && n->type.dtype == ADJ_F32;
}

int direct_match_filter(const adj_node *root, const adj_uses *uses, int max, const adj_node **group)
{
    if (root->op != &adj_op_conv2d_backprop_filter || max < 1)
        return 0;
    const adj_node *user = adj_only_user(root, uses);
    group[0] = root;
    if (root->type.dtype != ADJ_BF16 || max < 2 || user == NULL || !direct_is_widening(user))
        return 1;
    group[1] = user;
    return 2;
}

/* Returns the operand that n adds to `value`; NULL if n is not such a sum. */
static const adj_node *addend_of(const adj_node *n, const adj_node *value)
{
    if (n->op != &adj_op_add || (n->in[0] == value) == (n->in[1] == value))
        return NULL;
    const adj_node *addend = n->in[n->in[0] == value];
    return addend->type.dtype == value->type.dtype &&
                   adj_shape_equal(addend->type.shape, value->type.shape)
               ? addend
               : NULL;
}

/* True if n stores an f32 value in a half type. */
static int is_cast_of(const adj_node *n, const adj_node *value)
{
    return n->op == &adj_op_cast && n->in[0] == value && value->type.dtype == ADJ_F32 &&
           adj_is_half(n->type.dtype);
}

int direct_read_epilogue(const adj_group *g, direct_epilogue *e)
{
    int n = 1;
    *e = (direct_epilogue){.bias_in = -1, .addend_in = -1};
    if (n < g->n_node && direct_is_bias_of(g->node[n], g->node[0]))
        e->bias_in = adj_group_in(g, g->node[n++]->in[1]);
    if (n < g->n_node && addend_of(g->node[n], g->node[n - 1]) != NULL) {
        e->addend_in = adj_group_in(g, addend_of(g->node[n], g->node[n - 1]));
        if (e->addend_in < 0)
            return 0;
        n++;
    }
    if (n < g->n_node && g->node[n]->op == &adj_op_relu && g->node[n]->in[0] == g->node[n - 1]) {
        e->has_relu = 1;
        n++;
    }
    if (n < g->n_node && is_cast_of(g->node[n], g->node[n - 1]))
        n++;
    e->stored = g->node[n - 1]->type.dtype;
    return n == g->n_node && g->n_out == 1 && g->out[0] == g->node[n - 1];
}

/* True if n is a product whose kernels accept epilogues. */
static int has_epilogue(const adj_node *n)
{
    return n->op == &adj_op_conv2d || n->op == &adj_op_matmul || n->op == &adj_op_bias_add;
}

int direct_propose_epilogue(const adj_node *last, const adj_uses *uses, int max,
                            const adj_node **nodes)
{
    const adj_node *user = has_epilogue(last) ? adj_only_user(last, uses) : NULL;
    int n = 0;
    if (user != NULL && n < max && addend_of(user, last) != NULL) {
        nodes[n++] = last = user;
        user = adj_only_user(user, uses);
    }
    if (user != NULL && n < max && user->op == &adj_op_relu) {
        nodes[n++] = last = user;
        user = adj_only_user(user, uses);
    }
    if (user != NULL && n < max && is_cast_of(user, last))
        nodes[n++] = user;
    return n;
}
