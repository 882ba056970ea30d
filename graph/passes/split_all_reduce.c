/* split_all_reduce.c - the pass that splits an all_reduce into two nodes, its start and its
 * wait, if a backend before the last one, the reference, computes them: other steps run in
 * between (group.c orders them). Requires: backends are selected. Keeps: types. */
#include "passes.h"

static adj_node *split(rewriting *w, const adj_node *n, adj_node *const in[])
{
    if (n->op != &adj_op_all_reduce)
        return rule_copy(w, n, in);
    adj_node *start = adj_node_new1(&adj_op_all_reduce_start, in[0], n->attrs);
    if (start == NULL || !has_kernel(w, start))
        return rule_copy(w, n, in);
    return adj_node_new1(&adj_op_all_reduce_wait, start, NULL);
}

static int is_wanted(const pass_target *target, const adj_graph *g)
{
    (void)target;
    int found = 0;
    for (int id = 0; id < g->n_node && !found; id++)
        found = g->node[id]->op == &adj_op_all_reduce;
    return found;
}

const pass pass_split_all_reduce = {
    .name = "split all_reduce", .is_wanted = is_wanted, .rule = split};
