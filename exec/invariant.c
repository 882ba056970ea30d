/* invariant.c - what need not be computed in every run.
 *
 * A kernel is a function of its operands. A step whose operands come from parameters, states and
 * constants alone that no update assigns - an inference's filters - gives the same until one of
 * them is set. Such steps are the plan's first; they run all together, or not at all when no such
 * leaf has changed since. So what only they read may lie in the arena; what others read is kept.
 * Inputs are set before nearly every run: what follows from them is not kept. */
#include <string.h>

#include "exec.h"

int has_collective(int n, const adj_node *const node[])
{
    int has = 0;
    for (int i = 0; i < n; i++)
        has |= (node[i]->op->flags & ADJ_OP_COLLECTIVE) != 0;
    return has;
}

static void find_invariant_leaves(adj_exec *e)
{
    for (int i = 0; i < e->n_leaf; i++) {
        const leaf *l = &e->leaf[i];
        int is_set_seldom = l->node->op->flags & ADJ_OP_KEPT || l->node->op == &adj_op_const;
        slot_of(e, l->buffer)->invariance = is_set_seldom ? RUN_INVARIANT : RUN_VARIANT;
    }
    for (int i = 0; i < e->n_update; i++)
        slot_of(e, e->leaf[e->update[i].leaf].buffer)->invariance = RUN_VARIANT;
}

/* Requires: that of its operands. */
static invariance invariance_of(const adj_exec *e, const adj_node *n)
{
    invariance min = has_collective(1, &n) ? RUN_VARIANT : CONSTANT;
    if (n->op->flags & ADJ_OP_LEAF)
        return slot_of(e, e->first_buffer[n->id])->invariance;
    for (int k = 0; k < n->n_in; k++)
        if (e->invariance[n->in[k]->id] < min)
            min = e->invariance[n->in[k]->id];
    return min;
}

adj_status find_invariant_values(adj_exec *e)
{
    find_invariant_leaves(e);
    if ((e->invariance = exec_alloc(e, (size_t)e->graph->n_node, sizeof *e->invariance)) == NULL)
        return e->status;
    for (int id = 0; id < e->graph->n_node; id++)
        e->invariance[id] = invariance_of(e, e->graph->node[id]);
    return ADJ_OK;
}

int is_invariant(const adj_exec *e, const adj_node *value)
{
    return e->invariance != NULL && e->invariance[value->id] == RUN_INVARIANT;
}

void find_invariance(adj_exec *e, step *s)
{
    s->invariance = has_collective(s->group.n_node, s->group.node) ? RUN_VARIANT : CONSTANT;
    for (int k = 0; k < s->n_in; k++)
        if (slot_of(e, s->in[k])->invariance < s->invariance)
            s->invariance = slot_of(e, s->in[k])->invariance;
    for (int k = 0; k < s->n_out; k++)
        slot_of(e, s->out[k])->invariance = s->invariance;
}

/* A constant (a fill) is made once where an invariant step needs it, so that it is there; elsewhere
 * its memory is worth more than the time. Readers come later: from the last step to the first. */
static void settle_constants(adj_exec *e)
{
    for (int i = e->n_step - 1; i >= 0; i--) {
        step *s = &e->step[i];
        for (int k = 0; k < s->n_out && s->invariance == CONSTANT; k++)
            if (slot_of(e, s->out[k])->invariance == RUN_INVARIANT)
                s->invariance = RUN_INVARIANT;
        if (s->invariance == CONSTANT)
            s->invariance = RUN_VARIANT;
        for (int k = 0; k < s->n_out; k++)
            slot_of(e, s->out[k])->invariance = s->invariance;
        for (int k = 0; k < s->n_in && s->invariance == RUN_INVARIANT; k++)
            slot_of(e, s->in[k])->invariance = RUN_INVARIANT;
    }
}

static void keep_if_invariant(adj_exec *e, int b)
{
    if (slot_of(e, b)->invariance == RUN_INVARIANT)
        slot_of(e, b)->kept = 1;
}

static void keep_what_is_read_later(adj_exec *e)
{
    for (int i = 0; i < e->n_step; i++)
        for (int k = 0; k < e->step[i].n_in && e->step[i].invariance != RUN_INVARIANT; k++)
            keep_if_invariant(e, e->step[i].in[k]);
    for (int i = 0; i < e->n_fetch; i++)
        keep_if_invariant(e, e->fetch[i]);
    for (int i = 0; i < e->n_update; i++)
        keep_if_invariant(e, e->update[i].next);
}

adj_status plan_invariants(adj_exec *e)
{
    step *all = adj_alloc(&e->region.allocator, (size_t)e->n_step * sizeof *all);
    if (all == NULL)
        return no_memory(e);
    settle_constants(e);
    keep_what_is_read_later(e);
    memcpy(all, e->step, (size_t)e->n_step * sizeof *all);
    int n = 0;
    for (int wanted = 1; wanted >= 0; wanted--)
        for (int i = 0; i < e->n_step; i++)
            if ((all[i].invariance == RUN_INVARIANT) == wanted) {
                e->step[n++] = all[i];
                e->n_invariant += wanted;
            }
    adj_release(&e->region.allocator, all);
    return ADJ_OK;
}

uint64_t invariant_version(const adj_exec *e)
{
    uint64_t sum = 0;
    for (int i = 0; i < e->n_leaf; i++)
        if (slot_of(e, e->leaf[i].buffer)->invariance == RUN_INVARIANT)
            sum += e->leaf[i].version;
    return sum;
}
