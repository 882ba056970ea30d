/* place_by_time.c - places many slots in the arena in one walk through the steps.
 *
 * A slot is placed at its first step, in the smallest free gap that is large enough, and frees its
 * memory after its last step. Gaps are few where lifetimes are nested, as those of a forward and a
 * backward pass are: the walk then takes about n log n for n slots, else up to n times the number
 * of gaps. */
#include <stdlib.h>
#include <string.h>

#include "exec.h"
#include "memory.h"
#include "planning.h"

typedef struct {
    size_t start, bytes;
} hole;

typedef struct {
    hole *list; /* by offset; no two touch */
    int n;
    size_t end; /* end of the arena */
} holes;

/* Orders slots by their first steps, those of one step from the largest to the smallest. */
static int by_first(const void *a, const void *b)
{
    const slot *x = *(slot *const *)a, *y = *(slot *const *)b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : (x > y) - (x < y);
}

/* Orders slots by their last steps. */
static int by_last(const void *a, const void *b)
{
    const slot *x = *(slot *const *)a, *y = *(slot *const *)b;
    return x->last != y->last ? (x->last < y->last ? -1 : 1) : (x > y) - (x < y);
}

static void remove_hole(holes *h, int i)
{
    h->n--;
    memmove(h->list + i, h->list + i + 1, (size_t)(h->n - i) * sizeof *h->list);
}

/* Adds a gap and merges it with adjacent ones. */
static void add_hole(holes *h, size_t start, size_t bytes)
{
    int i = h->n;
    while (i > 0 && h->list[i - 1].start > start)
        i--;
    if (i < h->n && h->list[i].start == start + bytes) {
        bytes += h->list[i].bytes;
        remove_hole(h, i);
    }
    if (i > 0 && h->list[i - 1].start + h->list[i - 1].bytes == start) {
        h->list[i - 1].bytes += bytes;
        return;
    }
    memmove(h->list + i + 1, h->list + i, (size_t)(h->n - i) * sizeof *h->list);
    h->list[i] = (hole){start, bytes};
    h->n++;
}

/* Returns the offset for the bytes: in the smallest sufficient gap, else at the end. */
static size_t take_bytes(holes *h, size_t bytes)
{
    int best = NONE;
    for (int i = 0; i < h->n; i++)
        if (h->list[i].bytes >= bytes && (best == NONE || h->list[i].bytes < h->list[best].bytes))
            best = i;
    if (best == NONE) {
        const int last = h->n - 1;
        const int ends = last >= 0 && h->list[last].start + h->list[last].bytes == h->end;
        const size_t start = ends ? h->list[last].start : h->end;
        h->n -= ends;
        h->end = start + bytes;
        return start;
    }
    hole *taken = &h->list[best];
    const size_t start = taken->start;
    taken->start += bytes;
    taken->bytes -= bytes;
    if (taken->bytes == 0)
        remove_hole(h, best);
    return start;
}

adj_status place_by_time(adj_exec *e, int n, slot *first[], slot *last[])
{
    holes h = {.list = planning_alloc(e, (size_t)n + 1, sizeof *h.list)};
    if (h.list == NULL)
        return e->status;
    qsort(first, (size_t)n, sizeof *first, by_first);
    qsort(last, (size_t)n, sizeof *last, by_last);
    for (int i = 0, k = 0; i < n; i++) {
        for (; last[k]->last < first[i]->first; k++)
            add_hole(&h, last[k]->offset, slot_footprint(&e->plan, last[k]));
        first[i]->offset = take_bytes(&h, slot_footprint(&e->plan, first[i]));
    }
    e->info.arena_bytes = h.end;
    return ADJ_OK;
}
