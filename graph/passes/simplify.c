/* simplify.c - the peephole passes, by each op's rule: for a node alone (adj_op.simplify), or
 * with its users (adj_op.rewrite_with_users); and the pass that only drops dead nodes. */
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

const pass pass_simplify = {.name = "simplify", .rule = simplify};
const pass pass_rewrite_with_users = {
    .name = "rewrite with users", .is_wanted = may_regroup, .rule = rewrite_with_users};
const pass pass_copy = {.name = "copy", .rule = rule_copy};
