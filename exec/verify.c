/* verify.c - proves that a plan computes its graph: the steps are walked as in a run, but with a
 * map of what each byte of memory holds (walk.h) in place of numbers.
 *
 * A step may read a value only where the map has it, in the layout that the step's kernel was
 * prepared for. A step's results are entered in the map, and may overwrite only operands that its
 * kernel declares as overwritable. The proof relies on the groups, preparations and pointers of the
 * steps alone, and not on the decisions of memory.c. So it covers the order of the steps, layouts,
 * lifetimes, offsets, in-place results, updates, and the values kept between runs. It assumes that
 * kernels stay within their memory, write their whole result, and work in place where they claim
 * to.
 *
 * Two runs are walked; the second omits the steps that run only after a parameter was set. Each
 * further run starts in the state in which the second one started. A value that one run leaves and
 * the next one reads too early is refused in the first run, where it does not exist yet. */
#include <stdio.h>

#include "invariant.h"
#include "run.h"
#include "walk.h"

/* ---- a step ---- */

/* Fails if the step is called with another group than its kernel was prepared for, if an operand of
 * a node is neither in the group nor an operand of it, or if a result is not a node of it. */
static adj_status verify_group(walk *w, int i)
{
    const step *s = &w->e->plan.step[i];
    const adj_group *g = &s->group;
    const place last = {.value = w->e->plan.buffer[s->out[0]].value};
    if (s->call.group != g || s->call.state != s->prep.state)
        return fail_step(w, i, "is called with another step's group or state for", &last);
    if (s->kind != STEP_KERNEL &&
        w->base[w->e->plan.buffer[s->in[0]].value->id] != w->base[last.value->id])
        return fail_step(w, i, "does not compute its result", &last);
    for (int m = 0; m < g->n_node; m++)
        for (int k = 0; k < g->node[m]->n_in; k++) {
            const adj_node *x = g->node[m]->in[k];
            const place p = {.value = x};
            if (adj_position(m, g->node, x) < 0 && adj_group_in(g, x) < 0)
                return fail_step(w, i, "is not given its operand", &p);
        }
    for (int k = 0; k < g->n_out; k++) {
        const place p = {.value = g->out[k]};
        if (adj_position(g->n_node, g->node, g->out[k]) < 0)
            return fail_step(w, i, "does not compute its result", &p);
    }
    return ADJ_OK;
}

/* Fails if a step that runs only after a parameter was set reads a value that changes otherwise. */
static adj_status verify_invariant(walk *w, int i)
{
    const step *s = &w->e->plan.step[i];
    for (int k = 0; k < s->n_in; k++) {
        const content *c = find_held(w, &w->in[k]);
        if (c != NULL && !c->lasts)
            return fail_step(w, i,
                             "runs only when a parameter has changed, but depends on a value that "
                             "changes in every run:",
                             &w->in[k]);
    }
    return has_collective(s->group.n_node, s->group.node)
               ? fail_step(w, i, "is left out of some runs, but all processes wait for", &w->out[0])
               : ADJ_OK;
}

/* Fails if a step that can fail runs after a parameter has been changed. */
static adj_status verify_failure(walk *w, int i)
{
    const adj_group *g = &w->e->plan.step[i].group;
    const place p = {.value = w->overwritten};
    for (int m = 0; m < g->n_node && w->overwritten != NULL; m++)
        if (g->node[m]->op->flags & ADJ_OP_CAN_FAIL)
            return fail_step(w, i, "can fail after an update was computed in place of", &p);
    return ADJ_OK;
}

/* True if result `out` lies exactly in the memory of operand k, which the kernel may overwrite, and
 * no other operand lies there. */
static int may_overwrite(const walk *w, const step *s, int k, int out)
{
    const place *x = &w->in[k], *y = &w->out[out];
    int may = 0;
    for (int a = 0; a < ADJ_MAX_ALIASES && s->kind == STEP_KERNEL && k < 32; a++)
        may |= s->prep.alias[a].out == out && (s->prep.alias[a].operands >> k & 1);
    for (int i = 0; i < s->n_in; i++)
        may &= i == k || w->in[i].bytes == 0 || w->in[i].data != x->data;
    return may && x->data == y->data && x->bytes == y->bytes && x->layout == y->layout;
}

static int is_taken_over(const walk *w, const step *s, int k)
{
    int is_over = 0;
    for (int out = 0; out < s->n_out; out++)
        is_over |= may_overwrite(w, s, k, out);
    return is_over;
}

/* Fails if the size of the slot differs from that of the value in its layout: copies and guard
 * words use the slot's size. */
static adj_status verify_slot(walk *w, int i, const slot *s, const place *p)
{
    return s->bytes == p->bytes ? ADJ_OK : fail_step(w, i, "finds a slot of another size for", p);
}

/* Enters scratch and results; fails if one of them overwrites another or an operand. */
static adj_status verify_writes(walk *w, int i)
{
    const step *s = &w->e->plan.step[i];
    const place scratch = {.data = s->call.scratch, .bytes = s->prep.scratch};
    adj_status status =
        s->scratch != NONE ? verify_slot(w, i, &w->e->plan.slot[s->scratch], &scratch) : ADJ_OK;
    if (status == ADJ_OK)
        status = hold(w, &scratch, i, 0);
    for (int k = 0; k < s->n_in && scratch.bytes > 0 && status == ADJ_OK; k++)
        if (!is_held(w, &w->in[k]))
            status = fail_step(w, i, "has its scratch over its operand", &w->in[k]);
    for (int k = 0; k < s->n_out && status == ADJ_OK; k++)
        status = hold(w, &w->out[k], i, i < w->e->plan.n_invariant);
    for (int k = 0; k < s->n_out && status == ADJ_OK; k++)
        if (!is_held(w, &w->out[k]))
            status = fail_step(w, i, "writes another result over its result", &w->out[k]);
    if (status == ADJ_OK && !is_held(w, &scratch))
        status = fail_step(w, i, "writes a result over its", &scratch);
    for (int k = 0; k < s->n_in && status == ADJ_OK; k++)
        if (!is_held(w, &w->in[k]) && !is_taken_over(w, s, k))
            status = fail_step(
                w, i, "writes its result over an operand that it may not overwrite:", &w->in[k]);
    return status;
}

static adj_status verify_step(walk *w, int i)
{
    const step *s = &w->e->plan.step[i];
    char name[NAME];
    adj_status status = w->run == 1 ? verify_group(w, i) : ADJ_OK;
    for (int k = 0; k < s->n_out && status == ADJ_OK; k++) {
        w->out[k] = result_of(w->e, s, k);
        status = verify_slot(w, i, slot_of(&w->e->plan, s->out[k]), &w->out[k]);
    }
    for (int k = 0; k < s->n_in && status == ADJ_OK; k++) {
        w->in[k] = operand_of(w->e, s, k);
        if (is_held(w, &w->in[k]))
            continue;
        name_step(w, i, name);
        status = require(w, name, &w->in[k]);
    }
    if (status == ADJ_OK && i < w->e->plan.n_invariant)
        status = verify_invariant(w, i);
    if (status == ADJ_OK)
        status = verify_failure(w, i);
    return status == ADJ_OK ? verify_writes(w, i) : status;
}

/* ---- before and after the steps ---- */

static place leaf_place(const walk *w, int i)
{
    const leaf *l = &w->e->plan.leaf[i];
    return plain_place(w->e, l->node, leaf_data(&w->e->plan, l));
}

/* Fails unless each leaf holds its value, set before the run or kept. */
static void verify_leaves(walk *w, const char *reader, int but_assigned)
{
    for (int i = 0; i < w->e->plan.n_leaf; i++) {
        const place p = leaf_place(w, i);
        if (!but_assigned || !w->is_assigned[i])
            (void)require(w, reader, &p);
    }
}

/* Enters all leaves except constants. A value lasts if it depends only on leaves that no run
 * changes and that rerun the invariant steps when they are set. */
static void set_leaves(walk *w)
{
    const plan *plan = &w->e->plan;
    for (int i = 0; i < plan->n_leaf; i++) {
        const place p = leaf_place(w, i);
        const slot *s = slot_of(plan, plan->leaf[i].buffer);
        if (verify_slot(w, NONE, s, &p) == ADJ_OK && !is_constant(w, &p))
            (void)hold(w, &p, NONE, !w->is_assigned[i] && s->is_invariant);
    }
    verify_leaves(w, "the first step", 0);
}

static void verify_fetches(walk *w)
{
    const plan *plan = &w->e->plan;
    for (int i = 0; i < plan->n_fetch; i++) {
        const fetch *f = &plan->fetch[i];
        const place p = plain_place(w->e, plan->image[f->node->id], slot_of(plan, f->buffer)->data);
        (void)require(w, "a fetch", &p);
    }
}

/* Returns the place of the next value of update i, before or after the assignment. */
static place next_place(const walk *w, int i, int is_assigned)
{
    const plan *plan = &w->e->plan;
    const update *u = &plan->update[i];
    const adj_node *next = adj_updates_next_at(w->e->opts.updates, i);
    const char *leaf = leaf_data(plan, &plan->leaf[u->leaf]);
    const char *data = u->in_place || is_assigned ? leaf : slot_of(plan, u->next)->data;
    return plain_place(w->e, plan->image[next->id], data);
}

static void verify_updates(walk *w)
{
    const plan *plan = &w->e->plan;
    char reader[NAME], name[NAME];
    for (int i = 0; i < 2 * plan->n_update; i++) {
        const int is_assigned = i >= plan->n_update, k = i % plan->n_update;
        place next = next_place(w, k, is_assigned);
        const place leaf = leaf_place(w, plan->update[k].leaf);
        name_place(w->e, &leaf, name);
        snprintf(reader, NAME, "the update of %.90s", name);
        if (require(w, reader, &next) != ADJ_OK || next.data == leaf.data || is_assigned)
            continue;
        next.data = leaf.data;
        (void)hold(w, &next, plan->n_step, 0);
    }
}

/* Walks a run, with or without the invariant steps. The executor keeps its first error. */
static void verify_run(walk *w)
{
    const plan *plan = &w->e->plan;
    w->overwritten = NULL;
    set_leaves(w);
    for (int i = w->run == 1 ? 0 : plan->n_invariant; i < plan->n_step; i++)
        if (w->e->status != ADJ_OK || verify_step(w, i) != ADJ_OK)
            return;
    verify_fetches(w); /* a leaf's value as it was */
    verify_updates(w);
    verify_fetches(w);
    verify_leaves(w, "the next run", 1);
}

/* ---- the proof ---- */

/* Marks the leaves that updates assign; fails if the plan assigns an update to another leaf. */
static adj_status mark_assigned(walk *w)
{
    const plan *plan = &w->e->plan;
    for (int i = 0; i < plan->n_update; i++) {
        const adj_node *assigned = adj_updates_leaf_at(w->e->opts.updates, i);
        const place p = leaf_place(w, plan->update[i].leaf);
        if (plan->image[assigned->id] != p.value)
            return fail_step(w, plan->n_step, "assigns another leaf's next value to", &p);
        w->is_assigned[plan->update[i].leaf] = 1;
    }
    return ADJ_OK;
}

static adj_status open_walk(walk *w)
{
    const plan *p = &w->e->plan;
    size_t n = (size_t)p->n_leaf + (size_t)p->n_update;
    int max_in = 1, max_out = 1;
    for (int i = 0; i < p->n_step; i++) {
        n += (size_t)p->step[i].n_out + 1;
        max_in = p->step[i].n_in > max_in ? p->step[i].n_in : max_in;
        max_out = p->step[i].n_out > max_out ? p->step[i].n_out : max_out;
    }
    w->range = region_alloc(&w->region, 2 * n + 1, sizeof *w->range);
    w->order = region_alloc(&w->region, 2 * n + 1, sizeof *w->order);
    w->base = region_alloc(&w->region, (size_t)p->graph->n_node + 1, sizeof *w->base);
    w->is_assigned = region_alloc(&w->region, (size_t)p->n_leaf + 1, 1);
    w->in = region_alloc(&w->region, (size_t)max_in, sizeof *w->in);
    w->out = region_alloc(&w->region, (size_t)max_out, sizeof *w->out);
    if (w->range == NULL || w->order == NULL || w->base == NULL || w->is_assigned == NULL ||
        w->in == NULL || w->out == NULL)
        return no_memory(w->e);
    for (int id = 0; id < p->graph->n_node; id++) {
        const adj_node *n_id = p->graph->node[id];
        const int is_view = n_id->n_in > 0 && (n_id->op->flags & ADJ_OP_VIEW);
        w->base[id] = is_view ? w->base[n_id->in[0]->id] : n_id;
    }
    return ADJ_OK;
}

adj_status verify_plan(adj_exec *e)
{
    walk w = {.e = e, .region.allocator = e->region.allocator};
    const int runs = e->plan.n_invariant > 0 ? 2 : 1; /* only invariant steps make them differ */
    if (open_walk(&w) == ADJ_OK)
        (void)mark_assigned(&w);
    for (w.run = 1; w.run <= runs && e->status == ADJ_OK; w.run++)
        verify_run(&w);
    e->plan_is_wrong = e->status == ADJ_EBACKEND;
    region_free(&w.region);
    return e->status;
}
