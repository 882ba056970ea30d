/* yield.c - see yield.h. */
#include <string.h>

#include "inspect.h"
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

static int has_same_kernels(const adj_exec *a, const adj_exec *b)
{
    return a->n_step == b->n_step && exec_n_nodes(a) == exec_n_nodes(b) &&
           exec_hash_kernels(a) == exec_hash_kernels(b);
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
 * plan. */
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
    second->lent = e->arena;
    second->lent_bytes = e->info.arena_bytes;
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

/* What is said of the executor, not of a plan. */
static void keep_sayings(adj_exec *e, adj_exec *from)
{
    memcpy(e->message, from->message, sizeof e->message);
    memcpy(e->warning, from->warning, sizeof e->warning);
    e->selection = from->selection;
    e->info.timed = from->info.timed;
    e->info.timed_seconds = from->info.timed_seconds;
    e->info.cached = from->info.cached;
    e->info.plan_seconds = from->info.plan_seconds;
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
    keep_sayings(e, y->other);
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
