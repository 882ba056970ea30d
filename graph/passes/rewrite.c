/* rewrite.c - rebuilds a graph into another one through a rule; a graph is never edited.
 *
 * Only nodes that the roots need are rebuilt, and equal nodes are interned on the way: every
 * pass removes dead code and common subexpressions. */
#include "passes.h"

adj_node *rule_copy(rewriting *w, const adj_node *n, adj_node *const in[])
{
    return adj_node_new(w->to, n->op, n->n_in, in, n->attrs);
}

adj_status rewrite(rewriting *w, rewrite_rule *rule)
{
    const adj_graph *from = w->from;
    adj_graph *to = w->to;
    adj_node **in = adj_graph_alloc(to, (size_t)max_operands(from) * sizeof(adj_node *));
    if (in == NULL)
        return to->status;
    for (int id = 0; id < from->n_node; id++) {
        const adj_node *n = from->node[id];
        if (!is_needed(&w->uses[id]))
            continue;
        for (int k = 0; k < n->n_in; k++)
            in[k] = w->image[n->in[k]->id];
        to->role = n->role;
        to->clone = n->clone;
        if ((w->image[id] = adj_label(rule(w, n, in), n->name)) == NULL)
            return to->status;
    }
    return to->status;
}
