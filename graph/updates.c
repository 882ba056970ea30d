/* updates.c - assignments {param or state := next} that an executor makes at the end of a run, and
 * the nodes that compute next values. */
#include "graph.h"

adj_updates *adj_updates_new(adj_graph *g)
{
    if (g == NULL || g->status != ADJ_OK)
        return NULL;
    adj_updates *u = region_alloc(&g->region, 1, sizeof *u);
    if (u == NULL)
        adj_fail(g, ADJ_ENOMEM, "adj_updates_new: out of memory");
    else
        u->graph = g;
    return u;
}

static adj_status check_update(const adj_updates *u, const adj_node *leaf, const adj_node *next)
{
    adj_graph *g = u->graph;
    if (leaf->graph != g || next->graph != g)
        return adj_fail(g, ADJ_EARG, "adj_updates_add: a node belongs to another graph");
    if (!(leaf->op->flags & ADJ_OP_KEPT))
        return adj_fail(g, ADJ_EARG,
                        "adj_updates_add: only a param or state can be assigned (got %s)",
                        leaf->op->name);
    if (!is_same_type(leaf->type, next->type))
        return adj_fail(
            g, ADJ_ESHAPE,
            "adj_updates_add: next value of \"%s\" has the wrong type (got %s %s, expected %s %s)",
            leaf->name, adj_dtype_name(next->type.dtype), adj_shape_text(next->type.shape).s,
            adj_dtype_name(leaf->type.dtype), adj_shape_text(leaf->type.shape).s);
    if (adj_updates_assign(u, leaf))
        return adj_fail(g, ADJ_EARG, "adj_updates_add: \"%s\" is assigned twice", leaf->name);
    return ADJ_OK;
}

adj_status adj_updates_add(adj_updates *u, adj_node *leaf, adj_node *next)
{
    if (u == NULL)
        return ADJ_EARG;
    if (u->graph->status != ADJ_OK)
        return u->graph->status;
    if (leaf == NULL || next == NULL)
        return adj_fail(u->graph, ADJ_EARG, "adj_updates_add: %s is NULL",
                        leaf == NULL ? "leaf" : "next");
    adj_status status = check_update(u, leaf, next);
    if (status != ADJ_OK)
        return status;
    struct assignment *list =
        region_grow(&u->graph->region, u->list, u->n, &u->capacity, sizeof *list);
    if (list == NULL)
        return adj_fail(u->graph, ADJ_ENOMEM, "adj_updates_add: out of memory");
    u->list = list;
    list[u->n++] = (struct assignment){leaf, next};
    return ADJ_OK;
}

adj_updates *adj_updates_join(adj_graph *g, const adj_updates *a, const adj_updates *b)
{
    const adj_updates *parts[] = {a, b};
    adj_updates *u = adj_updates_new(g);
    for (int p = 0; p < 2; p++)
        for (int i = 0; i < adj_updates_count(parts[p]); i++)
            if (adj_updates_add(u, parts[p]->list[i].leaf, parts[p]->list[i].next) != ADJ_OK)
                return NULL;
    return u;
}

int adj_updates_count(const adj_updates *u) { return u != NULL ? u->n : 0; }

adj_node *adj_updates_leaf_at(const adj_updates *u, int i)
{
    return i >= 0 && i < adj_updates_count(u) ? u->list[i].leaf : NULL;
}

adj_node *adj_updates_next_at(const adj_updates *u, int i)
{
    return i >= 0 && i < adj_updates_count(u) ? u->list[i].next : NULL;
}

int adj_updates_assign(const adj_updates *u, const adj_node *leaf)
{
    for (int i = 0; i < adj_updates_count(u); i++)
        if (u->list[i].leaf == leaf)
            return 1;
    return 0;
}

/* Marks n as copied if it is part of the update: an update node, or a forward node computed from
 * gradients, as users write them. Marks it as read otherwise. */
static void mark_read(const adj_update_nodes *to, const char *has_gradient, const adj_node *n)
{
    const int is_made =
        n->role == ADJ_ROLE_UPDATE || (n->role == ADJ_ROLE_FORWARD && has_gradient[n->id]);
    (is_made && n->n_in > 0 ? to->is_copied : to->is_read)[n->id] = 1;
}

adj_status adj_find_update_nodes(const adj_updates *u, adj_update_nodes *to)
{
    adj_graph *g = u->graph;
    const size_t n = (size_t)g->n_node;
    char *has_gradient = adj_graph_alloc(g, 4 * n); /* by id: a gradient, or computed from one */
    if (has_gradient == NULL)
        return g->status;
    *to = (adj_update_nodes){has_gradient + n, has_gradient + 2 * n, has_gradient + 3 * n};
    for (int id = 0; id < g->n_node; id++) {
        const adj_node *x = g->node[id];
        has_gradient[id] = x->role == ADJ_ROLE_GRADIENT && x->n_in > 0;
        to->of_batch[id] = x->op == &adj_op_input && x->type.shape.rank > 0;
        for (int k = 0; k < x->n_in; k++) {
            has_gradient[id] |= has_gradient[x->in[k]->id];
            to->of_batch[id] |= to->of_batch[x->in[k]->id];
        }
    }
    for (int i = 0; i < u->n; i++)
        mark_read(to, has_gradient, u->list[i].next);
    for (int id = g->n_node - 1; id >= 0; id--)
        for (int k = 0; to->is_copied[id] && k < g->node[id]->n_in; k++)
            mark_read(to, has_gradient, g->node[id]->in[k]);
    return ADJ_OK;
}

adj_updates *adj_layer_updates(adj_graph *g)
{
    if (g != NULL && g->layer_updates == NULL)
        g->layer_updates = adj_updates_new(g);
    return g != NULL ? g->layer_updates : NULL;
}

void adj_layer_update_add(adj_node *leaf, adj_node *next)
{
    adj_node *known = leaf != NULL ? leaf : next;
    if (known != NULL)
        adj_updates_add(adj_layer_updates(known->graph), leaf, next);
}

adj_role adj_graph_set_role(adj_graph *g, adj_role role)
{
    if (g == NULL)
        return ADJ_ROLE_FORWARD;
    adj_role before = g->role;
    if (role == ADJ_ROLE_FORWARD || role == ADJ_ROLE_GRADIENT || role == ADJ_ROLE_UPDATE)
        g->role = role;
    else
        adj_fail(g, ADJ_EARG, "adj_graph_set_role: role is wrong (got %d, expected 0 to %d)",
                 (int)role, (int)ADJ_ROLE_UPDATE);
    return before;
}

const char *adj_graph_set_layer(adj_graph *g, const char *name)
{
    if (g == NULL)
        return NULL;
    const char *before = g->layer;
    g->layer = name;
    return before;
}
