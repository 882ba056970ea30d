/* save_for_backward.c - the pass that lets gradients read a small value that the forward pass
 * saves for them (adj_op.save_for_backward), if a backend before the last one, the reference,
 * computes it. Requires: backends are selected. Keeps: types. */
#include "passes.h"

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

static int is_wanted(const pass_target *target, const adj_graph *g)
{
    (void)g;
    return !target->opts->debug->no_fusion;
}

const pass pass_save_for_backward = {
    .name = "save for backward", .is_wanted = is_wanted, .rule = save_for_backward};
