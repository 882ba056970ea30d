/* memory_need.c - refuses a plan that obviously does not fit into the memory that is left, with how
 * much of it is there. That is better than running out of it: oneDNN 2.6.3 crashes then.
 *
 * Checked twice: before kernels are prepared, of values that have to be there at one time however
 * they are laid out; and of the whole plan before its memory is allocated. Only memory that malloc
 * provides is looked at: a caller's allocator knows its own. */
#include <stdlib.h>

#include "base/memory_left.h"
#include "exec.h"
#include "memory.h"

/* What is smaller is not worth looking at the system for. */
static const size_t considerable = (size_t)16 << 20;

/* Can malloc provide it? It may keep memory free inside the address space. */
static int can_be_had(size_t bytes)
{
    void *volatile p = malloc(bytes); /* volatile: the compiler must not leave it out */
    int had = p != NULL;
    free(p);
    return had;
}

static adj_status refuse_plan(adj_exec *e, size_t bytes, memory_left left)
{
    return set_error(e, ADJ_ENOMEM,
                     "adj_exec_new: out of memory (needs %zu bytes at least, %s leaves %zu)", bytes,
                     left.limit, left.bytes);
}

adj_status check_memory(adj_exec *e, size_t bytes)
{
    if (bytes < considerable || e->region.allocator.alloc != default_allocator().alloc)
        return ADJ_OK;
    memory_left left = address_space_left();
    if (bytes > left.bytes && !can_be_had(bytes))
        return refuse_plan(e, bytes, left);
    left = physical_memory_left("");
    /* What the system says is an estimate: an eighth more may be there. */
    if (bytes > left.bytes && bytes - left.bytes > left.bytes / 8)
        return refuse_plan(e, bytes, left);
    return ADJ_OK;
}

/* ---- a first estimate ---- */

typedef struct {
    const adj_exec *e;
    int *born, *dies; /* by id: the group that computes it; the last one that reads it, itself or as
                         a view. NONE: no memory of its own in the arena for certain */
    char *varies;     /* by id: computed in every run */
} lives;

static const adj_node *without_views(const adj_node *n)
{
    while (n->op->flags & ADJ_OP_VIEW)
        n = n->in[0];
    return n;
}

static void dies_after(lives *l, const adj_node *value, int group)
{
    int *last = &l->dies[without_views(value)->id];
    *last = group > *last ? group : *last;
}

/* What follows from seldom set leaves alone is computed at other times. */
static void find_varying(lives *l)
{
    const adj_exec *e = l->e;
    for (int i = 0; i < e->plan.n_leaf; i++)
        l->varies[e->plan.leaf[i].node->id] = e->plan.leaf[i].node->op == &adj_op_input;
    for (int i = 0; i < e->plan.n_update; i++)
        l->varies[e->plan.leaf[e->plan.update[i].leaf].node->id] = 1;
    for (int id = 0; id < e->plan.graph->n_node; id++)
        for (int k = 0; k < e->plan.graph->node[id]->n_in; k++)
            l->varies[id] |= l->varies[e->plan.graph->node[id]->in[k]->id];
}

/* A value that never leaves its group has no memory; a next value may be computed in its leaf's. */
static void find_lives(lives *l)
{
    const adj_exec *e = l->e;
    for (int g = 0; g < e->planning->n_group; g++)
        for (int i = 0; i < e->planning->group[g].n; i++)
            if (!(e->planning->group[g].node[i]->op->flags & ADJ_OP_VIEW))
                l->born[e->planning->group[g].node[i]->id] = g;
    for (int g = 0; g < e->planning->n_group; g++)
        for (int i = 0; i < e->planning->group[g].n; i++) {
            const adj_node *n = e->planning->group[g].node[i];
            for (int k = 0; k < n->n_in && !(n->op->flags & ADJ_OP_VIEW); k++)
                dies_after(l, n->in[k], g);
        }
    for (int i = 0; i < e->plan.n_fetch; i++)
        dies_after(l, e->plan.image[e->plan.fetched[i]->id], e->planning->n_group);
}

/* What there is of a value at least: its only reader may be computed along with it (epilogue.c), as
 * a cast to a smaller type, of which there is the result then. */
static size_t min_bytes(const lives *l, const adj_node *n)
{
    const adj_node *reader = adj_only_user(n, l->e->planning->uses);
    const size_t bytes = adj_type_bytes(n->type);
    const size_t others = reader != NULL ? adj_type_bytes(reader->type) : bytes;
    return reader != NULL && reader->op == &adj_op_cast && others < bytes ? others : bytes;
}

/* The largest sum of values that are there when a group begins, or at the end. */
static size_t min_arena(const lives *l, size_t change[])
{
    size_t live = 0, max = 0;
    for (int id = 0; id < l->e->plan.graph->n_node; id++)
        if (l->varies[id] && l->born[id] != NONE && l->dies[id] > l->born[id]) {
            const size_t bytes = min_bytes(l, l->e->plan.graph->node[id]);
            change[l->born[id] + 1] += bytes;
            change[l->dies[id] + 1] -= bytes; /* modulo the type's size */
        }
    for (int g = 0; g <= l->e->planning->n_group; g++) {
        live += change[g];
        max = live > max ? live : max;
    }
    return max;
}

adj_status check_values(adj_exec *e)
{
    const int n = e->plan.graph->n_node;
    lives l = {.e = e,
               .born = planning_alloc(e, (size_t)n, sizeof *l.born),
               .dies = planning_alloc(e, (size_t)n, sizeof *l.dies),
               .varies = planning_alloc(e, (size_t)n, 1)};
    size_t *change = planning_alloc(e, (size_t)e->planning->n_group + 3, sizeof *change),
           leaves = 0;
    if (e->status != ADJ_OK)
        return e->status;
    for (int id = 0; id < n; id++)
        l.born[id] = l.dies[id] = NONE;
    find_varying(&l);
    find_lives(&l);
    for (int i = 0; i < e->plan.n_leaf; i++)
        leaves += e->plan.leaf[i].node->op != &adj_op_const
                      ? adj_type_bytes(e->plan.leaf[i].node->type)
                      : 0;
    const size_t arena = min_arena(&l, change);
    return check_memory(e, leaves + arena);
}
