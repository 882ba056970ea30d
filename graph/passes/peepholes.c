/* peepholes.c - the passes that rewrite a node at a time, by each op's rule: for a node alone
 * (adj_op.simplify), or with its users (adj_op.rewrite_with_users), or with a small value that the
 * forward pass saves for gradients (adj_op.save_for_backward), or into its first operand's
 * computation (adj_op.fold); the pass that splits an all_reduce into two nodes, its start and its
 * wait, so that other steps run in between (group.c orders them); and the pass that only drops dead
 * nodes. The rules save and split apply if a backend before the last one, the reference, computes
 * what they make. Requires: backends are selected. Keeps: types. */
#include "passes.h"

static adj_node *simplify(rewriting *w, const adj_node *n, adj_node *in[])
{
    adj_node *simpler = n->op->simplify != NULL ? n->op->simplify(n, in) : NULL;
    return simpler != NULL ? simpler : rule_copy(w, n, in);
}

/* True unless only the reference computes, which runs the graph as it is. */
static int may_regroup(const pass_target *target, const adj_graph *g)
{
    (void)g;
    return !target->reference_only && !target->opts->debug->no_fusion;
}

static adj_node *rewrite_with_users(rewriting *w, const adj_node *n, adj_node *in[])
{
    adj_node *better =
        n->op->rewrite_with_users != NULL ? n->op->rewrite_with_users(n, in, w->uses) : NULL;
    return better != NULL ? better : rule_copy(w, n, in);
}

static adj_node *save_for_backward(rewriting *w, const adj_node *n, adj_node *in[])
{
    adj_node *better =
        n->op->save_for_backward != NULL ? n->op->save_for_backward(n, in, w->uses) : NULL;
    adj_node *y = rule_copy(w, n, in);
    if (better == NULL || y == NULL)
        return y;
    int is_better = has_kernel(w, y) && has_kernel(w, better);
    for (int k = 0; k < better->n_in && is_better; k++)
        is_better = adj_position(n->n_in, (const adj_node *const *)in, better->in[k]) >= 0 ||
                    has_kernel(w, better->in[k]);
    return is_better ? better : y;
}

static int may_save(const pass_target *target, const adj_graph *g)
{
    (void)g;
    return !target->opts->debug->no_fusion;
}

static adj_node *split(rewriting *w, const adj_node *n, adj_node *in[])
{
    if (n->op != &adj_op_all_reduce)
        return rule_copy(w, n, in);
    adj_node *start = adj_node_new1(&adj_op_all_reduce_start, in[0], n->attrs);
    if (start == NULL || !has_kernel(w, start))
        return rule_copy(w, n, in);
    return adj_node_new1(&adj_op_all_reduce_wait, start, NULL);
}

static int has_all_reduce(const pass_target *target, const adj_graph *g)
{
    (void)target;
    int found = 0;
    for (int id = 0; id < g->n_node && !found; id++)
        found = g->node[id]->op == &adj_op_all_reduce;
    return found;
}

const pass pass_simplify = {.name = "simplify", .rule = simplify};
const pass pass_rewrite_with_users = {
    .name = "rewrite with users", .is_wanted = may_regroup, .rule = rewrite_with_users};
const pass pass_copy = {.name = "copy", .rule = rule_copy};
const pass pass_save_for_backward = {
    .name = "save for backward", .is_wanted = may_save, .rule = save_for_backward};
const pass pass_split_all_reduce = {
    .name = "split all_reduce", .is_wanted = has_all_reduce, .rule = split};

/* ---- fold ----
 *
 * A node is folded if it is its first operand's only reader and its other operands depend on
 * parameters alone: in inference, batch norm becomes part of the filter before it. Steps that
 * depend on parameters alone run once (exec/invariant.c). Requires: the executor has no updates. */

static int may_fold(const pass_target *target, const adj_graph *g)
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

static adj_node *fold(rewriting *w, const adj_node *n, adj_node *in[])
{
    adj_node *folded = NULL;
    if (n->op->fold != NULL && others_are_invariant(w, n) && may_change(w, n->in[0], 1))
        folded = n->op->fold(n, in);
    return folded != NULL ? folded : rule_copy(w, n, in);
}

const pass pass_fold = {
    .name = "fold", .is_wanted = may_fold, .prepare = find_invariant, .rule = fold};
