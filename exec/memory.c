/* memory.c - lifetimes, in-place results, offsets in the arena, and whether there is enough memory.
 *
 * Best fit by size: slots are placed from the largest to the smallest, each in the gap with the
 * least waste among the placed slots whose lifetimes overlap its own. If the result has gaps, other
 * orders are tried. The time is quadratic in the number of slots, so plans with many slots use
 * place_by_time.c instead. */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "exec.h"
#include "memory.h"
#include "planning.h"

enum { ATTEMPTS = 32, MANY_SLOTS = 2048 };

static void read_at(plan *p, int b, int step)
{
    slot *s = slot_of(p, b);
    s->last = step > s->last ? step : s->last;
}

/* After the steps, next values are read as step n_step, then what is fetched. */
static void find_last_reads(plan *p)
{
    for (int i = 0; i < p->n_step; i++)
        for (int k = 0; k < p->step[i].n_in; k++)
            read_at(p, p->step[i].in[k], i);
    for (int i = 0; i < p->n_update; i++)
        read_at(p, p->update[i].next, p->n_step);
    for (int i = 0; i < p->n_fetch; i++)
        read_at(p, p->fetch[i].buffer, p->n_step + 1);
}

/* ---- in-place results ---- */

/* Reorders and copies compute nothing. */
static int only_updates_safely(const step *s)
{
    for (int i = 0; i < s->group.n_node; i++)
        if (s->group.node[i]->role != ADJ_ROLE_UPDATE ||
            (s->group.node[i]->op->flags & ADJ_OP_CAN_FAIL))
            return 0;
    return 1;
}

/* Returns the first step from which on all steps compute only updates and cannot fail. A run that
 * fails, for example on invalid labels, has failed before. */
static int first_update_step(const plan *p)
{
    int i = p->n_step;
    while (i > 0 && only_updates_safely(&p->step[i - 1]))
        i--;
    return i;
}

/* Returns the update that assigns `to` to the leaf `from`, if `to` may be computed directly into
 * the leaf, else NULL. Requires: `to` does not share its slot yet. */
static update *update_in_place(const plan *p, int from, int to)
{
    const int l = p->leaf_of[p->buffer[from].value->id];
    if (l == NONE || p->leaf[l].buffer != from || p->leaf[l].update == NONE)
        return NULL;
    update *u = &p->update[p->leaf[l].update];
    const int is_fetched = slot_of(p, to)->last > p->n_step;
    return u->next == to && !u->in_place && !is_fetched ? u : NULL;
}

int may_take_over(const plan *p, const step *s, int k, int out)
{
    const int from = s->in[k], to = s->out[out];
    for (int i = 0; i < s->n_in; i++) /* the operand is not read through a view, too */
        if (s->in[i] != from && slot_of(p, s->in[i]) == slot_of(p, from))
            return 0;
    return slot_of(p, from)->bytes == slot_of(p, to)->bytes &&
           p->buffer[from].layout == p->buffer[to].layout;
}

/* Computes a result of step i in the slot of operand k, if no step needs the operand after step i;
 * else returns 0. u: the update of the leaf in that slot. */
static int share_slot_with(plan *p, int i, int k, int out, update *u)
{
    const step *s = &p->step[i];
    const int from = s->in[k], to = s->out[out];
    slot *old = slot_of(p, from), *left = slot_of(p, to);
    if (old->last != i || (old->kept && u == NULL) || left->kept || !may_take_over(p, s, k, out))
        return 0;
    old->last = left->last > i ? left->last : i;
    left->bytes = 0; /* unused from now on */
    left->into = (int)(old - p->slot);
    if (u != NULL)
        u->in_place = 1;
    return 1;
}

/* Lets a result of step i take over an operand of the mask: the leaf that it updates, else the
 * first possible one. */
static void share_slot(plan *p, int i, adj_alias alias, int first_update)
{
    const step *s = &p->step[i];
    for (int is_update = i >= first_update; is_update >= 0; is_update--)
        for (int k = 0; k < s->n_in && k < 32; k++) {
            if (!(alias.operands >> k & 1))
                continue;
            update *u = is_update ? update_in_place(p, s->in[k], s->out[alias.out]) : NULL;
            if ((u != NULL || !is_update) && share_slot_with(p, i, k, alias.out, u))
                return;
        }
}

static void share_slots(plan *p)
{
    const int first_update = first_update_step(p);
    for (int i = 0; i < p->n_step; i++)
        for (int a = 0; a < ADJ_MAX_ALIASES && p->step[i].kind == STEP_KERNEL; a++)
            if (p->step[i].prep.alias[a].operands != 0)
                share_slot(p, i, p->step[i].prep.alias[a], first_update);
    for (int b = 0; b < p->n_buffer; b++)
        p->buffer[b].slot = (int)(slot_of(p, b) - p->slot);
}

/* ---- lifetimes ---- */

static void extend(slot *s, int first, int last)
{
    s->first = s->first == NONE || first < s->first ? first : s->first;
    s->last = last > s->last ? last : s->last;
}

static adj_status find_lifetimes(adj_exec *e)
{
    plan *p = &e->plan;
    for (int i = 0; i < p->n_step; i++) {
        step *s = &p->step[i];
        for (int k = 0; k < s->n_out; k++)
            extend(slot_of(p, s->out[k]), i, i);
        if (s->prep.scratch > 0) {
            if ((s->scratch = new_slot(e, s->prep.scratch)) == NONE)
                return e->status;
            extend(&p->slot[s->scratch], i, i);
        }
    }
    return ADJ_OK;
}

/* ---- offsets in the arena ---- */

static int by_size(const void *a, const void *b)
{
    const slot *x = *(slot *const *)a, *y = *(slot *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->first != y->first ? (x->first > y->first ? 1 : -1) : (x > y) - (x < y);
}

/* Adds s to n slots sorted by offset. */
static void insert_by_offset(slot *sorted[], int n, slot *s)
{
    while (n > 0 && sorted[n - 1]->offset > s->offset) {
        sorted[n] = sorted[n - 1];
        n--;
    }
    sorted[n] = s;
}

/* Returns the start of the smallest gap that is large enough for s among the n slots, sorted by
 * offset, whose lifetimes overlap its own. */
static size_t best_gap(const plan *p, slot *const sorted[], int n, const slot *s)
{
    const size_t bytes = slot_footprint(p, s);
    size_t end = 0, best = 0, min_gap = SIZE_MAX;
    for (int i = 0; i < n; i++) {
        const size_t start = sorted[i]->offset, stop = start + slot_footprint(p, sorted[i]);
        if (sorted[i]->first > s->last || s->first > sorted[i]->last)
            continue;
        if (start > end && start - end >= bytes && start - end < min_gap) {
            min_gap = start - end;
            best = end;
        }
        end = stop > end ? stop : end;
    }
    return min_gap != SIZE_MAX ? best : end;
}

static int in_arena(const slot *s) { return !s->kept && s->bytes > 0 && s->first != NONE; }

/* Finds the largest sum of slots alive at one step: no plan with these lifetimes can do with less.
 */
static adj_status find_live_bytes(adj_exec *e)
{
    const plan *p = &e->plan;
    size_t *change = planning_alloc(e, (size_t)p->n_step + 3, sizeof *change), sum = 0;
    if (change == NULL)
        return e->status;
    for (const slot *s = p->slot; s < p->slot + p->n_slot; s++)
        if (in_arena(s)) { /* modulo the size of the type, as sums are */
            change[s->first] += slot_footprint(p, s);
            change[s->last + 1] -= slot_footprint(p, s);
        }
    for (int i = 0; i <= p->n_step; i++) {
        sum += change[i];
        e->details.live_bytes = sum > e->details.live_bytes ? sum : e->details.live_bytes;
    }
    return ADJ_OK;
}

typedef struct { /* n slots in the order in which they are placed; room for as many, by offset */
    int n;
    slot **order, **placed;
} placing;

/* Assigns an offset to every slot; returns the arena's size. *highest: position in the order of the
 * slot that ends there. */
static size_t place_in_order(const plan *p, const placing *all, int *highest)
{
    size_t bytes = 0;
    for (int i = 0; i < all->n; i++) {
        slot *s = all->order[i];
        s->offset = best_gap(p, all->placed, i, s);
        insert_by_offset(all->placed, i, s);
        size_t end = s->offset + slot_footprint(p, s);
        if (end > bytes) {
            bytes = end;
            *highest = i;
        }
    }
    return bytes;
}

/* Places the largest slot first. While more than 1 % is wasted, the slot that ends highest is moved
 * ahead in the order, up to a number of attempts; the best result is taken. */
static adj_status place_slots(adj_exec *e)
{
    const plan *p = &e->plan;
    const size_t n = (size_t)p->n_slot,
                 enough = e->details.live_bytes + e->details.live_bytes / 100;
    placing all = {.order = planning_alloc(e, n, sizeof *all.order),
                   .placed = planning_alloc(e, n, sizeof *all.placed)};
    size_t *offset = planning_alloc(e, n, sizeof *offset);
    if (e->status != ADJ_OK)
        return e->status;
    for (size_t i = 0; i < n; i++)
        if (in_arena(&p->slot[i]))
            all.order[all.n++] = &p->slot[i];
    if (all.n >= MANY_SLOTS)
        return place_by_time(e, all.n, all.order,
                             memcpy(all.placed, all.order, (size_t)all.n * sizeof *all.order));
    qsort(all.order, (size_t)all.n, sizeof *all.order, by_size);
    e->info.arena_bytes = all.n > 0 ? SIZE_MAX : 0;
    for (int k = 0; k < ATTEMPTS && e->info.arena_bytes > enough; k++) {
        int highest = 0;
        const size_t bytes = place_in_order(p, &all, &highest);
        for (size_t i = 0; i < n && bytes < e->info.arena_bytes; i++)
            offset[i] = p->slot[i].offset;
        if (bytes < e->info.arena_bytes)
            e->info.arena_bytes = bytes;
        slot *s = all.order[highest];
        memmove(all.order + 1, all.order, (size_t)highest * sizeof *all.order);
        all.order[0] = s;
    }
    for (size_t i = 0; i < n; i++)
        p->slot[i].offset = offset[i];
    return ADJ_OK;
}

/* Places all slots one behind the other, without sharing, for checks that must not depend on the
 * placement. */
static void keep_all(adj_exec *e)
{
    const plan *p = &e->plan;
    for (slot *s = p->slot; s < p->slot + p->n_slot; s++)
        if (in_arena(s)) {
            extend(s, 0, p->n_step);
            s->offset = e->info.arena_bytes;
            e->info.arena_bytes += slot_footprint(p, s);
        }
    e->details.live_bytes = e->info.arena_bytes;
}

adj_status plan_memory(adj_exec *e)
{
    plan *p = &e->plan;
    find_last_reads(p);
    if (!e->debug.no_sharing)
        share_slots(p);
    if (find_lifetimes(e) != ADJ_OK)
        return e->status;
    if (e->debug.no_sharing)
        keep_all(e);
    else if (find_live_bytes(e) != ADJ_OK || place_slots(e) != ADJ_OK)
        return e->status;
    for (slot *s = p->slot; s < p->slot + p->n_slot; s++)
        if (s->kept && !s->foreign) {
            s->offset = e->info.storage_bytes;
            e->info.storage_bytes += slot_footprint(p, s);
        }
    return ADJ_OK;
}

/* ---- whether there is enough ----
 *
 * A plan that needs more memory than is available is refused, with both numbers: oneDNN 2.6.3 would
 * crash when memory runs out. The check runs three times: for leaves and fetched values before
 * kernels are prepared, for the buffers of candidates before these are timed, and for the plan's
 * memory before it is allocated. Only memory from malloc is checked: the limits of a caller's
 * allocator are unknown. */

/* Smaller plans are not compared with the free memory of the system. */
static const size_t considerable = (size_t)16 << 20;

/* True if malloc provides the bytes, which it may still have free in its address space. */
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
    /* Margin of an eighth, since the system's figure is an estimate. */
    if (bytes > left.bytes && bytes - left.bytes > left.bytes / 8)
        return refuse_plan(e, bytes, left);
    return ADJ_OK;
}

adj_status check_values(adj_exec *e)
{
    const plan *p = &e->plan;
    char *is_counted = planning_alloc(e, (size_t)p->graph->n_node, 1);
    size_t bytes = 0;
    if (is_counted == NULL)
        return e->status;
    for (int i = 0; i < p->n_leaf + p->n_fetch; i++) {
        const int is_leaf = i < p->n_leaf;
        const adj_node *n =
            viewed_node(is_leaf ? p->leaf[i].node : p->image[p->fetch[i - p->n_leaf].node->id]);
        if (!is_counted[n->id] && n->op != &adj_op_const)
            bytes += adj_type_bytes(n->type);
        is_counted[n->id] = 1;
    }
    return check_memory(e, bytes);
}
