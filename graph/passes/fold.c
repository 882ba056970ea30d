/* fold.c - the pass that folds a node into its first operand's computation (adj_op.fold), if the
 * node is that operand's only reader and its other operands depend on parameters alone: in
 * inference, batch norm becomes part of the filter before it. Steps that depend on parameters
 * alone run once (exec/invariant.c). Requires: the executor has no updates. */
#include "passes.h"

static int is_wanted(const pass_target *target, const adj_graph *g)
{
    if (target->reference_only || target->opts->debug->no_fusion ||
        adj_updates_count(target->opts->updates) != 0 || target->params_vary)
        return 0;
    for (int id = 0; id < g->n_node; id++)
        if (g->node[id]->op->fold != NULL)
            return 1;
    return 0;
}

/* By id of the rebuilt node: it depends on parameters alone. */
static adj_status find_invariant(rewriting *w)
{
    const adj_graph *from = w->from;
    char *invariant = w->state = adj_graph_alloc(w->to, (size_t)from->n_node);
    if (invariant == NULL)
        return w->to->status;
    for (int id = 0; id < from->n_node; id++) {
        const adj_node *n = from->node[id];
        int all =
            !(n->op->flags & ADJ_OP_LEAF) || n->op->flags & ADJ_OP_KEPT || n->op == &adj_op_const;
        for (int k = 0; k < n->n_in; k++)
            all &= invariant[n->in[k]->id];
        invariant[id] = (char)all;
    }
    return ADJ_OK;
}

/* True if all operands but the first depend on parameters alone. */
static int others_are_invariant(const rewriting *w, const adj_node *n)
{
    const char *invariant = w->state;
    for (int k = 1; k < n->n_in; k++)
        if (!invariant[n->in[k]->id])
            return 0;
    return 1;
}

/* True if m is read by one node alone and depends on parameters but for its first operand; unless m
 * has a filter, so must that operand, which may be a convolution before a bias. */
static int may_change(const rewriting *w, const adj_node *m, int depth)
{
    const adj_uses *u = &w->uses[m->id];
    return u->n_user == 1 && !u->is_root && others_are_invariant(w, m) &&
           (depth == 0 || m->op->filter_axes != NULL || m->n_in == 0 ||
            may_change(w, m->in[0], depth - 1));
}

static adj_node *fold(rewriting *w, const adj_node *n, adj_node *const in[])
{
    adj_node *folded = NULL;
    if (n->op->fold != NULL && others_are_invariant(w, n) && may_change(w, n->in[0], 1))
        folded = n->op->fold(n, in);
    return folded != NULL ? folded : rule_copy(w, n, in);
}

const pass pass_fold = {
    .name = "fold", .is_wanted = is_wanted, .prepare = find_invariant, .rule = fold};
