/* invariant.c - what need not be computed in every run.
 *
 * A kernel is a function of its operands. A step whose operands come from parameters, states and
 * constants alone that no update assigns - an inference's filters - gives the same until one of
 * them is set. Such steps are the plan's first; they run all together, or not at all when no such
 * leaf has changed since. So what only they read may lie in the arena; what others read is kept.
 * Inputs are set before nearly every run: what follows from them is not kept. */
#include <string.h>

#include "exec.h"
#include "invariant.h"

int has_collective(int n, const adj_node *const node[])
{
    int has = 0;
    for (int i = 0; i < n; i++)
        has |= (node[i]->op->flags & ADJ_OP_COLLECTIVE) != 0;
    return has;
}

static void find_invariant_leaves(adj_exec *e)
{
    for (int i = 0; i < e->plan.n_leaf; i++) {
        const leaf *l = &e->plan.leaf[i];
        int is_set_seldom = l->node->op->flags & ADJ_OP_KEPT || l->node->op == &adj_op_const;
        slot_of(e, l->buffer)->invariance = is_set_seldom ? RUN_INVARIANT : RUN_VARIANT;
    }
    for (int i = 0; i < e->plan.n_update; i++)
        slot_of(e, e->plan.leaf[e->plan.update[i].leaf].buffer)->invariance = RUN_VARIANT;
}

/* Requires: that of its operands. */
static invariance invariance_of(const adj_exec *e, const adj_node *n)
{
    invariance min = has_collective(1, &n) ? RUN_VARIANT : CONSTANT;
    if (n->op->flags & ADJ_OP_LEAF)
        return slot_of(e, e->planning->first_buffer[n->id])->invariance;
    for (int k = 0; k < n->n_in; k++)
        if (e->planning->invariance[n->in[k]->id] < min)
            min = e->planning->invariance[n->in[k]->id];
    return min;
}

adj_status find_invariant_values(adj_exec *e)
{
    const int n = e->plan.graph->n_node;
    invariance *of = e->planning->invariance = planning_alloc(e, (size_t)n, sizeof *of);
    if (of == NULL)
        return e->status;
    find_invariant_leaves(e);
    for (int id = 0; id < n; id++)
        of[id] = invariance_of(e, e->plan.graph->node[id]);
    return ADJ_OK;
}

int is_invariant(const adj_exec *e, const adj_node *value)
{
    return e->planning->invariance != NULL && e->planning->invariance[value->id] == RUN_INVARIANT;
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
    for (int i = e->plan.n_step - 1; i >= 0; i--) {
        step *s = &e->plan.step[i];
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
    for (int i = 0; i < e->plan.n_step; i++)
        for (int k = 0; k < e->plan.step[i].n_in && e->plan.step[i].invariance != RUN_INVARIANT;
             k++)
            keep_if_invariant(e, e->plan.step[i].in[k]);
    for (int i = 0; i < e->plan.n_fetch; i++)
        keep_if_invariant(e, e->plan.fetch[i]);
    for (int i = 0; i < e->plan.n_update; i++)
        keep_if_invariant(e, e->plan.update[i].next);
}

adj_status plan_invariants(adj_exec *e)
{
    step *all = planning_alloc(e, (size_t)e->plan.n_step, sizeof *all);
    if (all == NULL)
        return e->status;
    settle_constants(e);
    keep_what_is_read_later(e);
    memcpy(all, e->plan.step, (size_t)e->plan.n_step * sizeof *all);
    int n = 0;
    for (int wanted = 1; wanted >= 0; wanted--)
        for (int i = 0; i < e->plan.n_step; i++)
            if ((all[i].invariance == RUN_INVARIANT) == wanted) {
                e->plan.step[n++] = all[i];
                e->plan.n_invariant += wanted;
            }
    return ADJ_OK;
}

uint64_t invariant_version(const adj_exec *e)
{
    uint64_t sum = 0;
    for (int i = 0; i < e->plan.n_leaf; i++)
        if (slot_of(e, e->plan.leaf[i].buffer)->invariance == RUN_INVARIANT)
            sum += e->run.version[i];
    return sum;
}
