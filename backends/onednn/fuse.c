/* fuse.c - nodes fused into a convolution or matmul: a bias_add, as the primitive's bias
 * argument, and a cast of a half result to f32, as the primitive's result type. Both save a pass
 * over memory, and the result is rounded once.
 *
 * A relu is not fused: oneDNN's turns NaN into 0, which would hide that a network has diverged.
 * A value inside a group has one user and is not fetched. */
#include "onednn.h"

/* True if next adds a bias along root's last axis, where a matrix has its channels in both
 * formats. */
static int is_bias_of(const adj_node *next, const adj_node *root)
{
    if (next == NULL || next->op != &adj_op_bias_add || next->in[0] != root)
        return 0;
    const adj_format_attrs *a = next->attrs;
    return root->type.shape.rank == 2 || a->format == ADJ_NHWC;
}

static int is_widening(const adj_node *n)
{
    return n->op == &adj_op_cast && n->type.dtype == ADJ_F32;
}

int tail_match(const adj_node *root, const adj_uses *uses, int max, const adj_node **group)
{
    int n = 1;
    group[0] = root;
    if (n < max && is_bias_of(adj_only_user(root, uses), root))
        group[n++] = adj_only_user(root, uses);
    const adj_node *next = adj_only_user(group[n - 1], uses);
    if (n < max && next != NULL && is_widening(next))
        group[n++] = next;
    return n;
}

int tail_of(const adj_group *g, const adj_node **bias)
{
    int n = 1;
    *bias = NULL;
    if (n < g->n_node && g->node[n]->op == &adj_op_bias_add)
        *bias = g->node[n++]->in[1];
    if (n < g->n_node && is_widening(g->node[n]))
        n++;
    return n == g->n_node;
}
