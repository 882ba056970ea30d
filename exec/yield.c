/* yield.c - see yield.h. */
#include <string.h>

#include "pace.h"
#include "yield.h"

struct yielding {
    adj_exec *other; /* the plan that is not taken */
    pace pace;
    int is_due; /* the plans change before the next run */
    int fewer;  /* the plan that is taken is the one for fewer threads */
};

adj_exec *second_plan(const adj_exec *e) { return e->yielding != NULL ? e->yielding->other : NULL; }

/* ---- making it ---- */

static int sums_by_threads(const adj_exec *e)
{
    for (int i = 0; i < e->n_step; i++)
        if (e->step[i].prep.sums_by_threads)
            return 1;
    return 0;
}

static int is_same_value(const adj_node *a, const adj_node *b)
{
    return a->op == b->op && a->id == b->id && a->type.dtype == b->type.dtype &&
           adj_shape_equal(a->type.shape, b->type.shape);
}

static int are_same_nodes(const step *a, const step *b)
{
    int same = a->group.n_node == b->group.n_node;
    for (int i = 0; i < a->group.n_node && same; i++)
        same = is_same_value(a->group.node[i], b->group.node[i]) &&
               memcmp(a->group.node[i]->attrs, b->group.node[i]->attrs,
                      adj_attr_size(a->group.node[i]->op)) == 0;
    return same;
}

/* n buffers of the same values in the same layouts: those of two backends' instances differ, their
 * names do not. */
static int are_same_buffers(const adj_exec *e, const int x[], const adj_exec *f, const int y[],
                            int n)
{
    for (int i = 0; i < n; i++) {
        const buffer *a = &e->buffer[x[i]], *b = &f->buffer[y[i]];
        char layout[ADJ_WHY];
        snprintf(layout, sizeof layout, "%s", layout_text(e, a->layout, a->backend));
        if (a->backend != b->backend || !is_same_value(a->value, b->value) ||
            strcmp(layout, layout_text(f, b->layout, b->backend)) != 0)
            return 0;
    }
    return 1;
}

static int has_same_kernels(const adj_exec *e, const adj_exec *f);

/* Step by step the same computation by the same implementation. */
static int has_same_kernels(const adj_exec *e, const adj_exec *f)
{
    int same = e->n_step == f->n_step;
    for (int i = 0; i < e->n_step && same; i++) {
        const step *a = &e->step[i], *b = &f->step[i];
        same = a->kind == b->kind && a->kernel == b->kernel &&
               (a->kind == STEP_COPY || a->backend == b->backend) && a->n_in == b->n_in &&
               a->n_out == b->n_out && strcmp(a->prep.impl, b->prep.impl) == 0 &&
               are_same_nodes(a, b) && are_same_buffers(e, a->in, f, b->in, a->n_in) &&
               are_same_buffers(e, a->out, f, b->out, a->n_out);
    }
    return same;
}

/* Leaves are copied by their places, and updates assign to the same. */
static int has_same_leaves(const adj_exec *a, const adj_exec *b)
{
    if (a->n_leaf != b->n_leaf || a->n_update != b->n_update)
        return 0;
    for (int i = 0; i < a->n_leaf; i++) {
        const leaf *x = &a->leaf[i], *y = &b->leaf[i];
        if (x->node->op != y->node->op || x->user != y->user ||
            x->node->type.dtype != y->node->type.dtype ||
            !adj_shape_equal(x->node->type.shape, y->node->type.shape) ||
            strcmp(adj_node_name(x->node), adj_node_name(y->node)) != 0)
            return 0;
    }
    for (int i = 0; i < a->n_update; i++)
        if (a->update[i].leaf != b->update[i].leaf)
            return 0;
    return 1;
}

/* The first plan's kernels where they were selected: nothing is timed again. And its arena, in
 * which nothing is needed from one run to the next, but for what is fetched from the run's own
 * plan; without sharing, everything and the words around it stay there, so it is not lent. */
static adj_exec *plan_again(const adj_exec *e, const adj_graph *g, const adj_exec_opts *o)
{
    adj_exec_opts half = *o;
    adj_allocator a = e->region.allocator;
    adj_exec *second = adj_alloc(&a, sizeof *second);
    if (second == NULL)
        return NULL;
    half.threads = e->threads / 2;
    half.tune = 0;
    half.selection = e->selection;
    half.debug.trace = NULL;
    second->region.allocator = a;
    second->tuned_threads = e->tuned_threads;
    second->lent = e->no_sharing ? NULL : e->arena;
    second->lent_bytes = e->no_sharing ? 0 : e->info.arena_bytes;
    plan_executor(second, g, &half);
    return second;
}

void add_second_plan(adj_exec *e, const adj_graph *g, const adj_exec_opts *o)
{
    const int same_bits = o->yield == ADJ_YIELD_SAME_BITS;
    if (e->threads < 2 || (same_bits && sums_by_threads(e)))
        return;
    yielding *y = region_alloc(&e->region, 1, sizeof *y);
    adj_exec *second = y != NULL ? plan_again(e, g, o) : NULL;
    if (second == NULL)
        return;
    if (second->status != ADJ_OK || !has_same_leaves(e, second) ||
        (same_bits && (sums_by_threads(second) || !has_same_kernels(e, second)))) {
        adj_exec_free(second);
        return;
    }
    y->other = second;
    e->yielding = y;
    e->info.second_threads = second->threads;
}

/* ---- changing plans ---- */

/* Versions are those of the values, in both plans: what has the same is the same, and what is
 * invariant is computed again only where a leaf has changed since that plan ran. A run that failed
 * may have assigned without another version; but plans change only after one that did not fail. */
static void copy_leaves(const adj_exec *from, adj_exec *to)
{
    for (int i = 0; i < from->n_leaf; i++) {
        const leaf *l = &from->leaf[i];
        if (l->version == to->leaf[i].version)
            continue;
        memcpy(leaf_data(to, &to->leaf[i]), leaf_data(from, l), slot_of(from, l->buffer)->bytes);
        to->leaf[i].version = l->version;
    }
}

/* What is the executor's, not a plan's. */
static void keep_common_state(adj_exec *e, adj_exec *from)
{
    memcpy(e->message, from->message, sizeof e->message);
    memcpy(e->warning, from->warning, sizeof e->warning);
    e->selection = from->selection;
    e->info.timed = from->info.timed;
    e->info.timed_seconds = from->info.timed_seconds;
    e->info.cached = from->info.cached;
    e->info.plan_seconds = from->info.plan_seconds;
    e->info.second_threads = from->info.second_threads;
    e->yielding = from->yielding;
    from->yielding = NULL;
}

void yield_before(adj_exec *e)
{
    yielding *y = e->yielding;
    if (y == NULL || !y->is_due)
        return;
    const double start = seconds_now();
    copy_leaves(e, y->other);
    const adj_exec taken = *e;
    *e = *y->other;
    *y->other = taken;
    keep_common_state(e, y->other);
    y->fewer = !y->fewer;
    y->is_due = 0;
    pace_change(&y->pace, seconds_now() - start);
}

void yield_after(adj_exec *e, double seconds)
{
    yielding *y = e->yielding;
    if (e->last_run == RUN_COMPLETED)
        y->is_due = pace_next(&y->pace, seconds) != y->fewer;
}
