/* names.c - names of functions, after the layer of each node. */
#include <string.h>

#include "names.h"

const adj_node *param_behind(const adj_node *n)
{
    while (n->n_in > 0 && n->name == NULL && n->role == ADJ_ROLE_FORWARD)
        n = n->in[0];
    return n->op->flags & ADJ_OP_KEPT ? n : NULL;
}

/* Returns the forward node that n is a part of the gradient of, or NULL. */
static const adj_node *forward_node(const adj_graph *g, const adj_node *n)
{
    const adj_op *op = n->op == &adj_op_matmul ? n->op : n->op->forward;
    for (int id = 0; id < (int)n->id && op != NULL && n->role == ADJ_ROLE_GRADIENT; id++) {
        const adj_node *f = g->node[id];
        if (f->op == op && f->role == ADJ_ROLE_FORWARD && f->in[0] == n->in[0] &&
            (op == &adj_op_matmul || memcmp(f->attrs, n->attrs, adj_attr_size(op)) == 0))
            return f;
    }
    return NULL;
}

/* Returns the parameter that an update changes by n, its gradient, or NULL. */
static const adj_node *updated_param(const adj_graph *g, const adj_node *n)
{
    for (int id = (int)n->id + 1; id < g->n_node && n->role == ADJ_ROLE_GRADIENT; id++) {
        const adj_node *u = g->node[id];
        if (u->role != ADJ_ROLE_UPDATE || adj_operand_position(u, n) < 0)
            continue;
        for (int k = 0; k < u->n_in; k++)
            if (u->in[k]->op == &adj_op_param && u->in[k]->name != NULL)
                return u->in[k];
    }
    return NULL;
}

/* Returns the name of a leaf without its last part: "conv1" of "conv1/w", and of "conv1.weight". */
static expression layer_of_leaf(const char *name)
{
    const char *end = strrchr(name, '/');
    end = end != NULL ? end : strrchr(name, '.');
    return expr("%.*s", end != NULL ? (int)(end - name) : (int)strlen(name), name);
}

expression layer_of(const adj_graph *g, const adj_node *n)
{
    const adj_node *f = forward_node(g, n);
    if (f != NULL)
        return layer_of(g, f);
    const adj_node *updated = updated_param(g, n);
    if (updated != NULL)
        return layer_of_leaf(updated->name);
    for (int k = 0; k < n->n_in; k++) {
        const adj_node *p = param_behind(n->in[k]);
        if (p != NULL && p->name != NULL && n->role == ADJ_ROLE_UPDATE && p->op == &adj_op_param)
            return expr("%.90s", p->name);
        if (p != NULL && p->name != NULL && n->role != ADJ_ROLE_UPDATE)
            return layer_of_leaf(p->name);
    }
    if (n->name != NULL)
        return expr("%.90s", n->name);
    for (int k = 0; k < n->n_in && n->role == ADJ_ROLE_GRADIENT; k++)
        if (n->in[k]->role == ADJ_ROLE_FORWARD && n->in[k]->n_in > 0)
            return layer_of(g, n->in[k]);
    return n->n_in > 0 ? layer_of(g, n->in[0]) : expr("net");
}

const char *suffix_of(const adj_node *n)
{
    if (n->op != &adj_op_matmul)
        return writer_of(n->op)->suffix != NULL ? writer_of(n->op)->suffix : n->op->name;
    const adj_matmul_attrs *m = n->attrs;
    return n->role == ADJ_ROLE_FORWARD ? "forward"
           : m->transpose_b            ? "backprop_input"
                                       : "backprop_weights";
}
