/* verify.c - the verifier that runs after each pass: checks a graph's invariants, which only a
 * bug in the pass can break. */
#include <string.h>

#include "graph.h"

static adj_status verify_node(adj_graph *g, const adj_node *n, int id)
{
    _Alignas(16) char attrs[MAX_ATTR];
    adj_type type = {0};
    if (n->graph != g || n->id != (uint32_t)id)
        return adj_fail(g, ADJ_EARG, "verify: node id does not match its index (%d)", id);
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i]->graph != g || n->in[i]->id >= n->id)
            return adj_fail(g, ADJ_EARG, "verify: operand %d of node %d (%s) comes after it", i, id,
                            n->op->name);
    memcpy(attrs, n->attrs, adj_attr_size(n->op));
    adj_status status = infer_type(n, attrs, &type);
    if (status != ADJ_OK)
        return status;
    if (!is_same_type(type, n->type))
        return adj_fail(g, ADJ_ESHAPE,
                        "verify: node %d (%s) changed its type (got %s, expected %s)", id,
                        n->op->name, adj_shape_text(type.shape).s, adj_shape_text(n->type.shape).s);
    return ADJ_OK;
}

adj_status verify_graph(adj_graph *g)
{
    for (int id = 0; id < g->n_node && g->status == ADJ_OK; id++)
        verify_node(g, g->node[id], id);
    return g->status;
}
