/* assign.c - see assign.h: a beam search in the order of the plan.
 *
 * A state is a beginning of the plan: what it took, which layouts of each value are there, and the
 * ways that are chosen. Two states that agree in the layouts of the values that are read later, and
 * in the choices that are met again, have the same future: the dearer one is left out. */
#include "assign.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BEAM = 64, OPEN = -1 };

typedef struct {
    double seconds;
    unsigned char *there; /* by value: bit i: layout i */
    signed char *chosen;  /* by choice, or OPEN */
} state;

typedef struct {
    const assign_problem *p;
    int *value_over, *choice_over; /* the part after which it does not matter */
    int n, n_next, size;           /* size: places in next */
    state *now, *next;
} search;

/* ---- one part, one way ---- */

static void want(const assign_problem *p, state *s, int value, int layout)
{
    const unsigned there = s->there[value];
    if (there & 1U << layout)
        return;
    int from = 0;
    while (!(there >> from & 1U) && from < ASSIGN_LAYOUTS - 1)
        from++;
    s->seconds += p->reorder(p->user, value, from, layout);
    s->there[value] |= (unsigned char)(1U << layout);
}

/* way OPEN: plain. */
static void run_part(const assign_problem *p, state *s, const assign_part *part, int way)
{
    const int n = part->n_in + part->n_out;
    const int *layout = way != OPEN ? part->layout + way * n : NULL;
    for (int i = 0; i < part->n_in; i++)
        want(p, s, part->value[i], layout != NULL ? layout[i] : 0);
    for (int i = part->n_in; i < n; i++)
        s->there[part->value[i]] = (unsigned char)(1U << (layout != NULL ? layout[i] : 0));
    s->seconds += way != OPEN ? p->choice[part->choice].seconds[way] : 0;
}

/* ---- states ---- */

static void copy_state(const assign_problem *p, state *to, const state *from)
{
    to->seconds = from->seconds;
    memcpy(to->there, from->there, (size_t)p->n_value);
    memcpy(to->chosen, from->chosen, (size_t)p->n_choice);
}

/* What does not matter any more is the same in all states. */
static void forget(const search *w, state *s, int part)
{
    for (int v = 0; v < w->p->n_value; v++)
        if (w->value_over[v] == part)
            s->there[v] = 0;
}

static int has_same_future(const search *w, const state *a, const state *b, int part)
{
    if (memcmp(a->there, b->there, (size_t)w->p->n_value) != 0)
        return 0;
    for (int i = 0; i < w->p->n_choice; i++)
        if (a->chosen[i] != b->chosen[i] && w->choice_over[i] > part)
            return 0;
    return 1;
}

static int by_seconds(const void *a, const void *b)
{
    const double x = ((const state *)a)->seconds, y = ((const state *)b)->seconds;
    return (x > y) - (x < y);
}

/* The cheapest of next become now. */
static void keep_cheapest(search *w, int part)
{
    qsort(w->next, (size_t)w->n_next, sizeof *w->next, by_seconds);
    w->n = 0;
    for (int i = 0; i < w->n_next && w->n < BEAM; i++) {
        int k = 0;
        while (k < w->n && !has_same_future(w, &w->now[k], &w->next[i], part))
            k++;
        if (k == w->n)
            copy_state(w->p, &w->now[w->n++], &w->next[i]);
    }
}

/* ---- the search ---- */

static void branch(search *w, const assign_part *part)
{
    const assign_choice *c = &w->p->choice[part->choice];
    w->n_next = 0;
    for (int i = 0; i < w->n; i++) {
        const int chosen = w->now[i].chosen[part->choice];
        for (int k = chosen == OPEN ? 0 : chosen; k < (chosen == OPEN ? c->n : chosen + 1); k++) {
            state *s = &w->next[w->n_next++];
            copy_state(w->p, s, &w->now[i]);
            s->chosen[part->choice] = (signed char)k;
            run_part(w->p, s, part, k);
        }
    }
}

static void take_part(search *w, int number)
{
    const assign_part *part = &w->p->part[number];
    if (part->choice < 0) {
        for (int i = 0; i < w->n; i++) {
            run_part(w->p, &w->now[i], part, OPEN);
            forget(w, &w->now[i], number);
        }
        return;
    }
    branch(w, part);
    for (int i = 0; i < w->n_next; i++)
        forget(w, &w->next[i], number);
    keep_cheapest(w, number);
}

static void find_ends(search *w)
{
    const assign_problem *p = w->p;
    for (int i = 0; i < p->n_part; i++) {
        const assign_part *part = &p->part[i];
        for (int k = 0; k < part->n_in + part->n_out; k++)
            w->value_over[part->value[k]] = i;
        if (part->choice >= 0)
            w->choice_over[part->choice] = i;
    }
    for (int i = 0; i < p->n_end; i++)
        w->value_over[p->end[i]] = INT_MAX;
}

/* Returns the memory of all states; NULL: there is none. */
static char *make_states(search *w, const adj_allocator *a)
{
    const assign_problem *p = w->p;
    int most = 1;
    for (int i = 0; i < p->n_choice; i++)
        most = p->choice[i].n > most ? p->choice[i].n : most;
    w->size = BEAM * most;
    const size_t n = (size_t)w->size + BEAM, values = (size_t)p->n_value,
                 each = values + (size_t)p->n_choice;
    const size_t ints = (values + (size_t)p->n_choice) * sizeof(int);
    char *memory = adj_alloc(a, n * sizeof(state) + ints + n * each);
    if (memory == NULL)
        return NULL;
    w->now = (state *)(void *)memory;
    w->next = w->now + BEAM;
    w->value_over = (int *)(void *)(memory + n * sizeof(state));
    w->choice_over = w->value_over + values;
    char *bytes = memory + n * sizeof(state) + ints;
    for (size_t i = 0; i < n; i++, bytes += each) {
        w->now[i].there = (unsigned char *)bytes;
        w->now[i].chosen = (signed char *)bytes + values;
    }
    return memory;
}

/* The choice that no part has is the fastest way. */
static int fastest(const assign_choice *c)
{
    int best = 0;
    for (int i = 1; i < c->n; i++)
        best = c->seconds[i] < c->seconds[best] ? i : best;
    return best;
}

adj_status assign_cheapest(const assign_problem *p, const adj_allocator *a, int chosen[],
                           double *seconds)
{
    search w = {.p = p};
    char *memory = make_states(&w, a);
    if (memory == NULL)
        return ADJ_ENOMEM;
    find_ends(&w);
    w.n = 1;
    memset(w.now[0].there, 1, (size_t)p->n_value);
    memset(w.now[0].chosen, OPEN, (size_t)p->n_choice);
    for (int i = 0; i < p->n_part; i++)
        take_part(&w, i);
    const state *best = NULL;
    for (int i = 0; i < w.n; i++) {
        for (int k = 0; k < p->n_end; k++)
            want(p, &w.now[i], p->end[k], 0);
        if (best == NULL || w.now[i].seconds < best->seconds)
            best = &w.now[i];
    }
    *seconds = best->seconds;
    for (int i = 0; i < p->n_choice; i++)
        chosen[i] = best->chosen[i] != OPEN ? best->chosen[i] : fastest(&p->choice[i]);
    adj_release(a, memory);
    return ADJ_OK;
}
