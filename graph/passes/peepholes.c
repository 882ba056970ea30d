/* peepholes.c - the passes that rewrite a node at a time, by each op's rule: for a node alone
 * (adj_op.simplify), or with its users (adj_op.rewrite_with_users), or with a small value that the
 * forward pass saves for gradients (adj_op.save_for_backward); the pass that splits an all_reduce
 * into two nodes, its start and its wait, so that other steps run in between (group.c orders them);
 * and the pass that only drops dead nodes. The last two rules, save and split, apply if a backend
 * before the last one, the reference, computes what they make. Requires: backends are selected.
 * Keeps: types. */
#include "passes.h"

static adj_node *simplify(rewriting *w, const adj_node *n, adj_node *const in[])
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

static adj_node *rewrite_with_users(rewriting *w, const adj_node *n, adj_node *const in[])
{
    adj_node *better =
        n->op->rewrite_with_users != NULL ? n->op->rewrite_with_users(n, in, w->uses) : NULL;
    return better != NULL ? better : rule_copy(w, n, in);
}

static adj_node *save_for_backward(rewriting *w, const adj_node *n, adj_node *const in[])
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

static adj_node *split(rewriting *w, const adj_node *n, adj_node *const in[])
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
