/* fuse.c - a bias_add behind a convolution or matmul, as the primitive's bias argument: it costs no
 * pass over memory, and bf16 rounds once.
 *
 * A relu is not taken along: oneDNN's turns a NaN into 0, so that a network that has diverged would
 * look alive. A value inside a group has one reader and is not asked for from outside. */
#include "onednn.h"

/* The data format of a result; matrices have their channels last in both. */
static int64_t format_of(const adj_node *n)
{
    const adj_conv_attrs *a = n->attrs;
    return n->type.shape.rank == 4 ? a->geom.format : ADJ_NHWC;
}

int tail_match(const adj_node *root, const adj_uses *uses, int max, const adj_node **group)
{
    const adj_uses *u = &uses[root->id];
    group[0] = root;
    if (max < 2 || u->n_user != 1 || u->is_root)
        return 1;
    const adj_node *next = u->user[0];
    if (next->op != &adj_op_bias_add || next->in[0] != root)
        return 1;
    const adj_format_attrs *a = next->attrs;
    if (root->type.shape.rank == 4 && a->format != format_of(root))
        return 1;
    group[1] = next;
    return 2;
}

int tail_of(const adj_group *g, const adj_node **bias)
{
    *bias = NULL;
    if (g->n_node == 2 && g->node[1]->op == &adj_op_bias_add) {
        *bias = g->node[1]->in[1];
        return 1;
    }
    return g->n_node == 1;
}
