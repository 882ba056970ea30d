/* fuse.c - bias_add and relu behind a convolution or matmul, as part of the same primitive.
 *
 * The bias becomes the primitive's bias argument and the relu a post-op, so neither costs a pass
 * over memory. A value inside a group has one reader and is not asked for from outside. */
#include "onednn.h"

static const adj_node *only_reader(const adj_node *n, const adj_uses *uses)
{
    const adj_uses *u = &uses[n->id];
    return u->n_user == 1 && !u->is_root ? u->user[0] : NULL;
}

/* The data format of a node; matrices have their channels last in both. */
static int64_t format_of(const adj_node *n)
{
    const adj_conv_attrs *a = n->attrs;
    return n->type.shape.rank == 4 ? a->geom.format : ADJ_NHWC;
}

static int is_bias_of(const adj_node *n, const adj_node *root)
{
    if (n->op != &adj_op_bias_add || n->in[0] != root)
        return 0;
    const adj_format_attrs *a = n->attrs;
    return root->type.shape.rank == 2 || a->format == format_of(root);
}

int tail_match(const adj_node *root, const adj_uses *uses, int max, const adj_node **group)
{
    int n = 0;
    group[n++] = root;
    const adj_node *next = only_reader(root, uses);
    if (n < max && next != NULL && is_bias_of(next, root)) {
        group[n++] = next;
        next = only_reader(next, uses);
    }
    if (n < max && next != NULL && next->op == &adj_op_relu)
        group[n++] = next;
    return n;
}

tail tail_of(const adj_group *g)
{
    tail t = {.root = g->node[0]};
    for (int i = 1; i < g->n_node; i++) {
        if (g->node[i]->op == &adj_op_bias_add)
            t.bias = g->node[i]->in[1];
        else
            t.relu = 1;
    }
    return t;
}

dnnl_status_t tail_attr(const onednn *o, const tail *t, dnnl_primitive_attr_t *attr)
{
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t status = dnnl_primitive_attr_clone(attr, o->attr);
    if (status != dnnl_success || !t->relu)
        return status;
    status = dnnl_post_ops_create(&ops);
    if (status == dnnl_success)
        status = pd_append_eltwise(ops, dnnl_eltwise_relu, 0, 0);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_post_ops(*attr, ops);
    if (ops != NULL)
        dnnl_post_ops_destroy(ops);
    return status;
}
