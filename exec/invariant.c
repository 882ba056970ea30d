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

static void find_invariant_leaves(const adj_exec *e)
{
    const plan *p = &e->plan;
    for (const leaf *l = p->leaf; l < p->leaf + p->n_leaf; l++) {
        const int is_kept = l->node->op->flags & ADJ_OP_KEPT || l->node->op == &adj_op_const;
        slot_of(p, l->buffer)->is_invariant =
            is_kept && l->update == NONE && !adj_updates_assign(e->internal.varying, l->user);
    }
}

/* A value without leaves, such as a fill, is invariant only if an invariant value reads it: else it
 * is computed in every run, which saves memory. */
adj_status find_invariant_values(adj_exec *e)
{
    enum { VARIANT, INVARIANT, WITHOUT_LEAVES }; /* a node has the minimum of its operands */
    const adj_graph *g = e->plan.graph;
    char *of = e->planning->is_invariant = planning_alloc(e, (size_t)g->n_node, 1);
    if (of == NULL)
        return e->status;
    find_invariant_leaves(e);
    for (int id = 0; id < g->n_node; id++) {
        const adj_node *n = g->node[id];
        const int leaf = e->planning->first_buffer[id];
        of[id] = leaf != NONE            ? (char)slot_of(&e->plan, leaf)->is_invariant
                 : has_collective(1, &n) ? VARIANT
                                         : WITHOUT_LEAVES;
        for (int k = 0; k < n->n_in; k++)
            of[id] = of[n->in[k]->id] < of[id] ? of[n->in[k]->id] : of[id];
    }
    for (int id = g->n_node - 1; id >= 0; id--) {
        of[id] = of[id] == INVARIANT;
        for (int k = 0; of[id] && k < g->node[id]->n_in; k++)
            of[g->node[id]->in[k]->id] = INVARIANT;
    }
    return ADJ_OK;
}

int is_invariant(const adj_exec *e, const adj_node *value)
{
    const char *of = e->planning->is_invariant;
    return of != NULL && of[value->id];
}

/* A step is invariant if all its operands are or, without operands, its result is. */
static void find_invariant_steps(const adj_exec *e)
{
    const plan *p = &e->plan;
    for (int i = 0; i < p->n_step; i++) { /* no array without steps */
        step *s = &p->step[i];
        s->is_invariant = s->n_in > 0 ? !has_collective(s->group.n_node, s->group.node)
                                      : is_invariant(e, p->buffer[s->out[0]].value);
        for (int k = 0; k < s->n_in; k++)
            s->is_invariant &= slot_of(p, s->in[k])->is_invariant;
        for (int k = 0; k < s->n_out; k++)
            slot_of(p, s->out[k])->is_invariant = s->is_invariant;
    }
}

static void keep_if_invariant(const plan *p, int b)
{
    if (slot_of(p, b)->is_invariant)
        slot_of(p, b)->kept = 1;
}

static void keep_what_is_read_later(const plan *p)
{
    for (int i = 0; i < p->n_step; i++)
        for (int k = 0; k < p->step[i].n_in && !p->step[i].is_invariant; k++)
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
    find_invariant_steps(e);
    keep_what_is_read_later(p);
    for (int i = 0; i < p->n_step; i++)
        if (p->step[i].is_invariant)
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
        if (slot_of(p, p->leaf[i].buffer)->is_invariant)
            sum += e->run.version[i];
    return sum;
}
