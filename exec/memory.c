/* memory.c - lifetimes, what is computed in place, and where everything lies in the arena.
 *
 * Best fit by size: the largest slot first, each at the lowest-waste gap among the slots placed so
 * far whose lifetimes overlap its own; in another order where that leaves gaps. The time is
 * quadratic in the number of slots, so many slots are placed by time instead (place_by_time.c). */
#include <stdlib.h>
#include <string.h>

#include "exec.h"
#include "memory.h"
#include "run.h"

enum { ATTEMPTS = 32, MANY_SLOTS = 2048 };

static void read_at(adj_exec *e, int b, int step)
{
    slot *s = slot_of(e, b);
    s->last_read = step > s->last_read ? step : s->last_read;
}

/* n_step stands for "after the run": what is fetched or becomes a leaf's next value. */
static void find_last_reads(adj_exec *e)
{
    for (int i = 0; i < e->plan.n_step; i++)
        for (int k = 0; k < e->plan.step[i].n_in; k++)
            read_at(e, e->plan.step[i].in[k], i);
    for (int i = 0; i < e->plan.n_fetch; i++)
        read_at(e, e->plan.fetch[i], e->plan.n_step);
    for (int i = 0; i < e->plan.n_update; i++)
        read_at(e, e->plan.update[i].next, e->plan.n_step);
}

/* Reorders and copies compute nothing. */
static int only_updates_safely(const step *s)
{
    for (int i = 0; i < s->group.n_node; i++)
        if (s->group.node[i]->role != ADJ_ROLE_UPDATE ||
            (s->group.node[i]->op->flags & ADJ_OP_CAN_FAIL))
            return 0;
    return 1;
}

/* From this step on only updates are computed, and none can fail: a run that fails, which bad
 * labels can cause, has failed before it. */
static int first_update_step(const adj_exec *e)
{
    int i = e->plan.n_step;
    while (i > 0 && only_updates_safely(&e->plan.step[i - 1]))
        i--;
    return i;
}

/* Tables to find the update whose result may be computed right into its leaf. */
typedef struct {
    char *is_fetched; /* by slot, as the plan made them: its value or a view of it */
    int *update;      /* by buffer of a leaf: the update that assigns it; else NONE */
    int first_step;   /* no step before it may do so */
} in_place_updates;

static adj_status find_in_place_updates(adj_exec *e, in_place_updates *u)
{
    u->is_fetched = planning_alloc(e, (size_t)e->plan.n_slot, 1);
    u->update = planning_alloc(e, (size_t)e->plan.n_buffer, sizeof *u->update);
    if (e->status != ADJ_OK)
        return e->status;
    u->first_step = first_update_step(e);
    for (int i = 0; i < e->plan.n_fetch; i++)
        u->is_fetched[e->plan.buffer[e->plan.fetch[i]].slot] = 1;
    for (int b = 0; b < e->plan.n_buffer; b++)
        u->update[b] = NONE;
    for (int i = 0; i < e->plan.n_update; i++)
        u->update[e->plan.leaf[e->plan.update[i].leaf].buffer] = i;
    return ADJ_OK;
}

/* Returns the update that assigns the value in `to` to from's leaf, if `to` may be computed right
 * into the leaf, else NULL. Requires: the slot of `to` is still its own. */
static update *update_in_place(adj_exec *e, const in_place_updates *all, int from, int to)
{
    update *u = all->update[from] != NONE ? &e->plan.update[all->update[from]] : NULL;
    return u != NULL && u->next == to && !u->in_place && !all->is_fetched[e->plan.buffer[to].slot]
               ? u
               : NULL;
}

/* Lets the result in `to` take over the slot of `from`, with its views. */
static void take_over(adj_exec *e, int from, int to)
{
    slot *left = slot_of(e, to), *shared = slot_of(e, from);
    join_slots(e, to, from);
    shared->last_read = left->last_read > shared->last_read ? left->last_read : shared->last_read;
    left->bytes = 0; /* unused from now on */
}

/* Does the step read that memory through another buffer, a view, too? */
static int reads_twice(const adj_exec *e, const step *s, int from)
{
    for (int k = 0; k < s->n_in; k++)
        if (s->in[k] != from && e->plan.buffer[s->in[k]].slot == e->plan.buffer[from].slot)
            return 1;
    return 0;
}

/* A result of step i in the operand's slot, if nobody else needs that from step i on. */
static int share_slot_with(adj_exec *e, int i, int from, int to, update *u)
{
    const step *s = &e->plan.step[i];
    const slot *old = slot_of(e, from);
    if (old->last_read != i || old->bytes != slot_of(e, to)->bytes ||
        e->plan.buffer[from].layout != e->plan.buffer[to].layout || (old->kept && u == NULL) ||
        slot_of(e, to)->kept || reads_twice(e, s, from))
        return 0;
    take_over(e, from, to);
    if (u != NULL)
        u->in_place = 1;
    return 1;
}

/* Lets a result of step i take over one of the operands in the mask: the leaf that it updates, else
 * the first that can be had. */
static void share_slot(adj_exec *e, int i, adj_alias alias, const in_place_updates *updates)
{
    const step *s = &e->plan.step[i];
    int to = s->out[alias.out];
    for (int k = 0; k < s->n_in && k < 32 && i >= updates->first_step; k++) {
        update *u = alias.operands >> k & 1 ? update_in_place(e, updates, s->in[k], to) : NULL;
        if (u != NULL && share_slot_with(e, i, s->in[k], to, u))
            return;
    }
    for (int k = 0; k < s->n_in && k < 32; k++)
        if ((alias.operands >> k & 1) && share_slot_with(e, i, s->in[k], to, NULL))
            return;
}

static adj_status share_slots(adj_exec *e)
{
    in_place_updates updates;
    if (find_in_place_updates(e, &updates) != ADJ_OK)
        return e->status;
    for (int i = 0; i < e->plan.n_step; i++)
        for (int a = 0; a < ADJ_MAX_ALIASES && e->plan.step[i].kind == STEP_KERNEL; a++)
            if (e->plan.step[i].prep.alias[a].operands != 0)
                share_slot(e, i, e->plan.step[i].prep.alias[a], &updates);
    return ADJ_OK;
}

static void extend(slot *s, int first, int last)
{
    s->first = s->first == NONE || first < s->first ? first : s->first;
    s->last = last > s->last ? last : s->last;
}

static adj_status find_lifetimes(adj_exec *e)
{
    for (int i = 0; i < e->plan.n_step; i++) {
        step *s = &e->plan.step[i];
        for (int k = 0; k < s->n_out; k++) {
            slot *written = slot_of(e, s->out[k]);
            extend(written, i, written->last_read > i ? written->last_read : i);
        }
        if (s->prep.scratch > 0) {
            if (e->plan.n_slot >= e->planning->max_buffer)
                return set_error(e, ADJ_EBACKEND,
                                 "adj_exec_new: the plan needs more buffers than %d",
                                 e->planning->max_buffer);
            s->scratch = e->plan.n_slot++;
            e->plan.slot[s->scratch] = (slot){.bytes = s->prep.scratch, .first = i, .last = i};
        }
    }
    return ADJ_OK;
}

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

/* The start of the smallest gap that takes the bytes, among neighbours sorted by offset. */
static size_t best_gap(const adj_exec *e, slot *const neighbour[], int n, size_t bytes)
{
    size_t end = 0, best = 0, min_gap = SIZE_MAX;
    for (int i = 0; i < n; i++) {
        size_t start = neighbour[i]->offset;
        if (start > end && start - end >= bytes && start - end < min_gap) {
            min_gap = start - end;
            best = end;
        }
        size_t stop = start + slot_footprint(e, neighbour[i]);
        end = stop > end ? stop : end;
    }
    return min_gap != SIZE_MAX ? best : end;
}

static int in_arena(const slot *s) { return !s->kept && s->bytes > 0 && s->first != NONE; }

/* The largest sum of slots alive at one step: no plan with these lifetimes can do with less. */
static adj_status find_live_bytes(adj_exec *e)
{
    size_t *change = planning_alloc(e, (size_t)e->plan.n_step + 2, sizeof *change), sum = 0;
    if (change == NULL)
        return e->status;
    for (int k = 0; k < e->plan.n_slot; k++)
        if (in_arena(&e->plan.slot[k])) { /* modulo the size of the type, as sums are */
            change[e->plan.slot[k].first] += slot_footprint(e, &e->plan.slot[k]);
            change[e->plan.slot[k].last + 1] -= slot_footprint(e, &e->plan.slot[k]);
        }
    for (int i = 0; i <= e->plan.n_step; i++) {
        sum += change[i];
        e->info.live_bytes = sum > e->info.live_bytes ? sum : e->info.live_bytes;
    }
    return ADJ_OK;
}

typedef struct { /* n slots in the order in which they are placed; room for as many, twice */
    int n;
    slot **order, **neighbour, **placed;
} placing;

/* Gives every slot its offset; returns the arena's size. *highest: the slot that ends there, by its
 * place in the order. */
static size_t place_in_order(const adj_exec *e, const placing *p, int *highest)
{
    size_t bytes = 0;
    for (int i = 0; i < p->n; i++) {
        slot *s = p->order[i];
        int m = 0;
        for (int k = 0; k < i; k++)
            if (p->placed[k]->first <= s->last && s->first <= p->placed[k]->last)
                p->neighbour[m++] = p->placed[k];
        s->offset = best_gap(e, p->neighbour, m, slot_footprint(e, s));
        insert_by_offset(p->placed, i, s);
        size_t end = s->offset + slot_footprint(e, s);
        if (end > bytes) {
            bytes = end;
            *highest = i;
        }
    }
    return bytes;
}

/* Places the largest slot first. While that wastes more than a hundredth, the slot that found no
 * room below the others is placed before them, some times over, and the best is taken. */
static adj_status place_slots(adj_exec *e)
{
    placing p = {.order = planning_alloc(e, (size_t)e->plan.n_slot, sizeof *p.order),
                 .neighbour = planning_alloc(e, (size_t)e->plan.n_slot, sizeof *p.neighbour),
                 .placed = planning_alloc(e, (size_t)e->plan.n_slot, sizeof *p.placed)};
    size_t *offset = planning_alloc(e, (size_t)e->plan.n_slot, sizeof *offset);
    if (e->status != ADJ_OK)
        return e->status;
    for (int i = 0; i < e->plan.n_slot; i++)
        if (in_arena(&e->plan.slot[i]))
            p.order[p.n++] = &e->plan.slot[i];
    if (p.n >= MANY_SLOTS)
        return place_by_time(e, p.n, p.order,
                             memcpy(p.placed, p.order, (size_t)p.n * sizeof *p.order));
    qsort(p.order, (size_t)p.n, sizeof *p.order, by_size);
    e->info.arena_bytes = p.n > 0 ? SIZE_MAX : 0;
    const size_t enough = e->info.live_bytes + e->info.live_bytes / 100;
    for (int k = 0; k < ATTEMPTS && e->info.arena_bytes > enough; k++) {
        int highest = 0;
        size_t bytes = place_in_order(e, &p, &highest);
        for (int i = 0; i < e->plan.n_slot && bytes < e->info.arena_bytes; i++)
            offset[i] = e->plan.slot[i].offset;
        if (bytes < e->info.arena_bytes)
            e->info.arena_bytes = bytes;
        slot *s = p.order[highest];
        memmove(p.order + 1, p.order, (size_t)highest * sizeof *p.order);
        p.order[0] = s;
    }
    for (int i = 0; i < e->plan.n_slot; i++)
        e->plan.slot[i].offset = offset[i];
    return ADJ_OK;
}

/* From the first step to the last, one behind the other: what is found out by such a plan does not
 * depend on how slots are placed otherwise. */
static void keep_all(adj_exec *e)
{
    for (int i = 0; i < e->plan.n_slot; i++)
        if (in_arena(&e->plan.slot[i])) {
            extend(&e->plan.slot[i], 0, e->plan.n_step);
            e->plan.slot[i].offset = e->info.arena_bytes;
            e->info.arena_bytes += slot_footprint(e, &e->plan.slot[i]);
        }
    e->info.live_bytes = e->info.arena_bytes;
}

static int overlap(const adj_exec *e, const slot *a, const slot *b)
{
    return a->first <= b->last && b->first <= a->last &&
           a->offset < b->offset + slot_footprint(e, b) &&
           b->offset < a->offset + slot_footprint(e, a);
}

/* Canaries would be laid to kernels that have nothing to do with it. */
static adj_status check_placing(adj_exec *e)
{
    for (int i = 0; i < e->plan.n_slot; i++)
        for (int k = 0; k < i; k++) {
            const slot *a = &e->plan.slot[i], *b = &e->plan.slot[k];
            char of_a[SLOT_NAME], of_b[SLOT_NAME];
            if (!in_arena(a) || !in_arena(b) || !overlap(e, a, b))
                continue;
            name_slot(e, a, of_a);
            name_slot(e, b, of_b);
            return set_error(e, ADJ_EBACKEND,
                             "memory: %s and %s overlap, though both are needed at one step", of_a,
                             of_b);
        }
    return ADJ_OK;
}

adj_status plan_memory(adj_exec *e)
{
    find_last_reads(e);
    if (!e->opts.debug.no_sharing && share_slots(e) != ADJ_OK)
        return e->status;
    if (find_lifetimes(e) != ADJ_OK)
        return e->status;
    if (e->opts.debug.no_sharing)
        keep_all(e);
    else if (find_live_bytes(e) != ADJ_OK || place_slots(e) != ADJ_OK ||
             (e->opts.debug.canaries && check_placing(e) != ADJ_OK))
        return e->status;
    for (int i = 0; i < e->plan.n_slot; i++)
        if (e->plan.slot[i].kept && !e->plan.slot[i].foreign) {
            e->plan.slot[i].offset = e->info.storage_bytes;
            e->info.storage_bytes += slot_footprint(e, &e->plan.slot[i]);
        }
    return ADJ_OK;
}
