/* assign.c - see assign.h: a beam search in the order of the plan, then one choice at a time.
 *
 * A state is a beginning of the plan: what it took, which layouts of each value are there, and the
 * ways that are chosen. Two states that agree in the layouts of the values that are read later, and
 * in the choices that are met again, have the same future: the dearer one is left out. A value that
 * will be wanted in plain in any case is made plain at once, so that no state looks cheap for what
 * it has only put off. */
#include "assign.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { BEAM = 64, OPEN = -1 };

typedef struct {
    double seconds;
    uint32_t *there; /* by value: bit i: layout i */
    int *chosen;     /* by choice, or OPEN */
} state;

typedef struct {
    const assign_problem *p;
    int *value_over, *choice_over; /* the part after which it does not matter */
    char *wants_plain;             /* by value: somebody does, whatever is chosen */
    int n, n_next;
    state *now, *next;
} search;

/* ---- one part, one way ---- */

static void want(const assign_problem *p, state *s, int value, int layout)
{
    const uint32_t there = s->there[value];
    if (there >> layout & 1)
        return;
    int from = 0;
    while (!(there >> from & 1) && from < ASSIGN_LAYOUTS - 1)
        from++;
    s->seconds += p->reorder(p->user, value, from, layout);
    s->there[value] |= UINT32_C(1) << layout;
}

/* way OPEN: plain. */
static void run_part(const search *w, state *s, const assign_part *part, int way)
{
    const assign_problem *p = w->p;
    const int n = part->n_in + part->n_out;
    const int *layout = way != OPEN ? part->layout + (ptrdiff_t)way * n : NULL;
    for (int i = 0; i < part->n_in; i++)
        want(p, s, part->value[i], layout != NULL ? layout[i] : 0);
    for (int i = part->n_in; i < n; i++) {
        s->there[part->value[i]] = UINT32_C(1) << (layout != NULL ? layout[i] : 0);
        if (w->wants_plain[part->value[i]])
            want(p, s, part->value[i], 0);
    }
    s->seconds += way != OPEN ? p->choice[part->choice].seconds[way] : 0;
}

/* ---- states ---- */

static void copy_state(const assign_problem *p, state *to, const state *from)
{
    to->seconds = from->seconds;
    memcpy(to->there, from->there, (size_t)p->n_value * sizeof *to->there);
    memcpy(to->chosen, from->chosen, (size_t)p->n_choice * sizeof *to->chosen);
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
    if (memcmp(a->there, b->there, (size_t)w->p->n_value * sizeof *a->there) != 0)
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
            s->chosen[part->choice] = k;
            run_part(w, s, part, k);
        }
    }
}

static void take_part(search *w, int number)
{
    const assign_part *part = &w->p->part[number];
    if (part->choice < 0) {
        for (int i = 0; i < w->n; i++) {
            run_part(w, &w->now[i], part, OPEN);
            forget(w, &w->now[i], number);
        }
        return;
    }
    branch(w, part);
    for (int i = 0; i < w->n_next; i++)
        forget(w, &w->next[i], number);
    keep_cheapest(w, number);
}

static void look_ahead(search *w)
{
    const assign_problem *p = w->p;
    for (int i = 0; i < p->n_part; i++) {
        const assign_part *part = &p->part[i];
        for (int k = 0; k < part->n_in + part->n_out; k++)
            w->value_over[part->value[k]] = i;
        for (int k = 0; k < part->n_in; k++)
            w->wants_plain[part->value[k]] |= part->choice < 0;
        if (part->choice >= 0)
            w->choice_over[part->choice] = i;
    }
    for (int i = 0; i < p->n_end; i++) {
        w->value_over[p->end[i]] = INT_MAX;
        w->wants_plain[p->end[i]] = 1;
    }
}

/* Returns the memory of all states; NULL: there is none. */
static char *make_states(search *w, const adj_allocator *a)
{
    const assign_problem *p = w->p;
    size_t max = 1;
    for (int i = 0; i < p->n_choice; i++)
        max = (size_t)p->choice[i].n > max ? (size_t)p->choice[i].n : max;
    const size_t n = BEAM * (max + 1), values = (size_t)p->n_value, choices = (size_t)p->n_choice;
    const size_t ints = (values + choices) * sizeof(int);
    const size_t there = values * sizeof(uint32_t), chosen = choices * sizeof(int);
    const size_t total = n * (sizeof(state) + there + chosen) + ints + values;
    char *memory = adj_alloc(a, total);
    if (memory == NULL)
        return NULL;
    char *next = memory + n * sizeof(state);
    w->now = (state *)(void *)memory;
    w->next = w->now + BEAM;
    w->value_over = (int *)(void *)next;
    w->choice_over = w->value_over + values;
    next += ints;
    for (size_t i = 0; i < n; i++) {
        w->now[i].there = (uint32_t *)(void *)(next + i * there);
        w->now[i].chosen = (int *)(void *)(next + n * there + i * chosen);
    }
    w->wants_plain = next + n * (there + chosen);
    return memory;
}

static void start(const assign_problem *p, state *s)
{
    s->seconds = 0;
    for (int v = 0; v < p->n_value; v++)
        s->there[v] = 1;
}

static void finish(const assign_problem *p, state *s)
{
    for (int i = 0; i < p->n_end; i++)
        want(p, s, p->end[i], 0);
}

static const state *search_beam(search *w)
{
    w->n = 1;
    start(w->p, &w->now[0]);
    memset(w->now[0].chosen, OPEN, (size_t)w->p->n_choice * sizeof *w->now[0].chosen);
    for (int i = 0; i < w->p->n_part; i++)
        take_part(w, i);
    const state *best = &w->now[0];
    for (int i = 0; i < w->n; i++) {
        finish(w->p, &w->now[i]);
        best = w->now[i].seconds < best->seconds ? &w->now[i] : best;
    }
    return best;
}

/* The choice that no part has is the fastest way. */
static int fastest(const assign_choice *c)
{
    int best = 0;
    for (int i = 1; i < c->n; i++)
        best = c->seconds[i] < c->seconds[best] ? i : best;
    return best;
}

/* Seconds of the whole plan as it is chosen. */
static double run_all(search *w, const int chosen[])
{
    const assign_problem *p = w->p;
    state *s = &w->next[0];
    start(p, s);
    for (int i = 0; i < p->n_part; i++)
        run_part(w, s, &p->part[i], p->part[i].choice < 0 ? OPEN : chosen[p->part[i].choice]);
    finish(p, s);
    return s->seconds;
}

/* Until none can be made better alone. */
static double improve(search *w, int chosen[], double seconds)
{
    for (int is_better = 1; is_better;) {
        is_better = 0;
        for (int i = 0; i < w->p->n_choice; i++)
            for (int k = 0, was = chosen[i]; k < w->p->choice[i].n; k++) {
                chosen[i] = k;
                const double now = run_all(w, chosen);
                if (now < seconds) {
                    seconds = now;
                    was = k;
                    is_better = 1;
                }
                chosen[i] = was;
            }
    }
    return seconds;
}

adj_status assign_cheapest(const assign_problem *p, const adj_allocator *a, int chosen[],
                           double *seconds)
{
    search w = {.p = p};
    char *memory = make_states(&w, a);
    if (memory == NULL)
        return ADJ_ENOMEM;
    look_ahead(&w);
    const state *best = search_beam(&w);
    for (int i = 0; i < p->n_choice; i++)
        chosen[i] = best->chosen[i] != OPEN ? best->chosen[i] : fastest(&p->choice[i]);
    *seconds = improve(&w, chosen, run_all(&w, chosen));
    adj_release(a, memory);
    return ADJ_OK;
}
