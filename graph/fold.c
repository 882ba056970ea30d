/* fold.c - the pass that folds a node into what its first operand computes (adj_op.fold), where
 * nobody else reads that and all that is changed of it follows from parameters alone: an
 * inference's batch norm becomes part of the filter before it. Steps that follow from parameters
 * alone run once (fixed.c). Requires: the executor has no updates. */
#include "graph.h"

int has_folds(const adj_graph *g)
{
    for (int id = 0; id < g->n_node; id++)
        if (g->node[id]->op->fold != NULL)
            return 1;
    return 0;
}

adj_status find_stays(rewriting *w, const adj_graph *from)
{
    if ((w->stays = adj_graph_alloc(w->to, (size_t)from->n_node)) == NULL)
        return w->to->status;
    for (int id = 0; id < from->n_node; id++) {
        const adj_node *n = from->node[id];
        int stays =
            !(n->op->flags & ADJ_OP_LEAF) || n->op->flags & ADJ_OP_KEPT || n->op == &adj_op_const;
        for (int k = 0; k < n->n_in; k++)
            stays &= w->stays[n->in[k]->id];
        w->stays[id] = (char)stays;
    }
    return ADJ_OK;
}

/* All operands but the first. */
static int others_stay(const rewriting *w, const adj_node *n)
{
    for (int k = 1; k < n->n_in; k++)
        if (!w->stays[n->in[k]->id])
            return 0;
    return 1;
}

adj_node *rule_fold(rewriting *w, const adj_node *n, adj_node *const in[])
{
    adj_node *folded = NULL;
    if (n->op->fold != NULL && w->uses[n->in[0]->id].n_user == 1 &&
        !w->uses[n->in[0]->id].is_root && others_stay(w, n) && others_stay(w, n->in[0]))
        folded = n->op->fold(n, in);
    return folded != NULL ? folded : rule_copy(w, n, in);
}
