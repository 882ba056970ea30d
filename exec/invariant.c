/* invariant.c - finds the values that need not be computed in every run.
 *
 * A kernel is a function of its operands. A step that depends only on constants and on parameters
 * and states that no update assigns, such as the packed filters of inference, gives the same result
 * until one of these is set. Such steps are the first of the plan. They all run, or none does if no
 * such leaf has been set since the last run. So a value that only they read may lie in the arena; a
 * value that other steps read is kept between runs. Values that depend on inputs are computed in
 * every run, as inputs are set before nearly every one. */
#include "exec.h"
#include "invariant.h"
#include "planning.h"

int has_collective(int n, const adj_node *const node[])
{
    int has = 0;
    for (int i = 0; i < n; i++)
        has |= (node[i]->op->flags & ADJ_OP_COLLECTIVE) != 0;
    return has;
}

/* True if the updates assign the leaf. */
static int is_assigned_by(const adj_updates *u, const adj_node *user)
{
    int assigned = 0;
    for (int i = 0; i < adj_updates_count(u); i++)
        assigned |= adj_updates_leaf_at(u, i) == user;
    return assigned;
}

static void find_invariant_leaves(const adj_exec *e)
{
    const plan *p = &e->plan;
    for (const leaf *l = p->leaf; l < p->leaf + p->n_leaf; l++) {
        const int is_kept = l->node->op->flags & ADJ_OP_KEPT || l->node->op == &adj_op_const;
        slot_of(p, l->buffer)->invariance =
            is_kept && l->update == NONE && !is_assigned_by(e->internal.varying, l->user)
                ? RUN_INVARIANT
                : RUN_VARIANT;
    }
}

/* Returns the invariance of n. Requires: that of its operands. */
static invariance invariance_of(const adj_exec *e, const adj_node *n)
{
    const planning *c = e->planning;
    invariance min = has_collective(1, &n) ? RUN_VARIANT : CONSTANT;
    if (n->op->flags & ADJ_OP_LEAF)
        return slot_of(&e->plan, c->first_buffer[n->id])->invariance;
    for (int k = 0; k < n->n_in; k++)
        if (c->invariance[n->in[k]->id] < min)
            min = c->invariance[n->in[k]->id];
    return min;
}

adj_status find_invariant_values(adj_exec *e)
{
    const adj_graph *g = e->plan.graph;
    invariance *of = planning_alloc(e, (size_t)g->n_node, sizeof *of);
    e->planning->invariance = of;
    find_invariant_leaves(e);
    for (int id = 0; id < g->n_node && of != NULL; id++)
        of[id] = invariance_of(e, g->node[id]);
    return e->status;
}

int is_invariant(const adj_exec *e, const adj_node *value)
{
    const invariance *of = e->planning->invariance;
    return of != NULL && of[value->id] == RUN_INVARIANT;
}

/* Sets the invariance of a step and of its results. */
static void find_invariance(const plan *p, step *s)
{
    s->invariance = has_collective(s->group.n_node, s->group.node) ? RUN_VARIANT : CONSTANT;
    for (int k = 0; k < s->n_in; k++)
        if (slot_of(p, s->in[k])->invariance < s->invariance)
            s->invariance = slot_of(p, s->in[k])->invariance;
    for (int k = 0; k < s->n_out; k++)
        slot_of(p, s->out[k])->invariance = s->invariance;
}

/* A fill is computed once if an invariant step reads it; otherwise in every run, which saves
 * memory. Readers come later, so the loop goes from the last step to the first. */
static void settle_constants(const plan *p)
{
    for (int i = p->n_step - 1; i >= 0; i--) {
        step *s = &p->step[i];
        for (int k = 0; k < s->n_out && s->invariance == CONSTANT; k++)
            if (slot_of(p, s->out[k])->invariance == RUN_INVARIANT)
                s->invariance = RUN_INVARIANT;
        if (s->invariance == CONSTANT)
            s->invariance = RUN_VARIANT;
        for (int k = 0; k < s->n_out; k++)
            slot_of(p, s->out[k])->invariance = s->invariance;
        for (int k = 0; k < s->n_in && s->invariance == RUN_INVARIANT; k++)
            slot_of(p, s->in[k])->invariance = RUN_INVARIANT;
    }
}

static void keep_if_invariant(const plan *p, int b)
{
    if (slot_of(p, b)->invariance == RUN_INVARIANT)
        slot_of(p, b)->kept = 1;
}

static void keep_what_is_read_later(const plan *p)
{
    for (int i = 0; i < p->n_step; i++)
        for (int k = 0; k < p->step[i].n_in && p->step[i].invariance != RUN_INVARIANT; k++)
            keep_if_invariant(p, p->step[i].in[k]);
    for (int i = 0; i < p->n_fetch; i++)
        keep_if_invariant(p, p->fetch[i].buffer);
    for (int i = 0; i < p->n_update; i++)
        keep_if_invariant(p, p->update[i].next);
}

adj_status plan_invariants(adj_exec *e)
{
    plan *p = &e->plan;
    step *later = planning_alloc(e, (size_t)p->n_step, sizeof *later);
    int n = 0, n_later = 0;
    if (later == NULL)
        return e->status;
    for (int i = 0; i < p->n_step; i++)
        find_invariance(p, &p->step[i]);
    settle_constants(p);
    keep_what_is_read_later(p);
    for (int i = 0; i < p->n_step; i++)
        if (p->step[i].invariance == RUN_INVARIANT)
            p->step[n++] = p->step[i];
        else
            later[n_later++] = p->step[i];
    for (int i = 0; i < n_later; i++)
        p->step[n + i] = later[i];
    p->n_invariant = n;
    return ADJ_OK;
}

uint64_t invariant_version(const adj_exec *e)
{
    const plan *p = &e->plan;
    uint64_t sum = 0;
    for (int i = 0; i < p->n_leaf; i++)
        if (slot_of(p, p->leaf[i].buffer)->invariance == RUN_INVARIANT)
            sum += e->run.version[i];
    return sum;
}
