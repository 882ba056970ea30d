/* race.c - times the candidates for one group.
 *
 * The candidates are all that the kernels of the allowed backends can prepare, except the
 * reference. They run alternately, so that a disturbance affects all of them. Each one counts with
 * its minimum time plus the reorders at its borders: of operands that are not present in its
 * layouts, and of results back to plain. The untuned candidate wins unless another is faster by
 * more than the noise. If the plan will run only a few times, the untuned candidate runs first, and
 * its time limits the time for the others (tune.c). */
#include <math.h>
#include <string.h>

#include "tune.h"

enum { ROUNDS = 5 };
/* Multiples of the best time that drop a candidate: after the first round, and after later ones. */
static const double hopeless[] = {1.5, 1.25};
static const double clearly = 0.98, long_run = 0.02;

typedef struct {
    step s;
    int number;  /* number among the kernel's candidates */
    double best; /* seconds; HUGE_VAL: not run */
    int dropped; /* out of the race */
} timed_candidate;

typedef struct {
    region region; /* memory for this group */
    int n;
    timed_candidate *list;
} race;

static adj_status open_race(adj_exec *e, race *r, int places)
{
    *r = (race){.region = {.allocator = e->region.allocator}};
    r->list = region_alloc(&r->region, (size_t)places, sizeof *r->list);
    return r->list != NULL ? ADJ_OK : no_memory(e);
}

static void close_race(adj_exec *e, race *r)
{
    for (int i = 0; i < r->n; i++)
        drop_step(e, &r->list[i].s);
    region_free(&r->region);
}

/* Returns the next place in the race: s with arrays of its own, to be prepared; NULL: out of
 * memory.
 */
static timed_candidate *new_candidate(adj_exec *e, race *r, const step *s)
{
    timed_candidate *t = &r->list[r->n];
    *t = (timed_candidate){.s = *s, .best = HUGE_VAL};
    t->s.call.message = e->run.message;
    return alloc_operands(e, &r->region, &t->s, s->n_in, s->n_out) == ADJ_OK ? t : NULL;
}

/* Prepares the candidate in the next place. ADJ_ENOKERNEL: it refuses, or is the reference's and
 * another backend has one. */
static adj_status enter(adj_exec *e, race *r, const step *s, candidate *c)
{
    timed_candidate *t = new_candidate(e, r, s);
    if (t == NULL)
        return e->status;
    const adj_status status = prepare_step(e, &t->s, c);
    if (status == ADJ_OK && is_fallback(e, c->index) && r->n > 0) {
        drop_candidate(c);
        return ADJ_ENOKERNEL;
    }
    t->number = c->number;
    r->n += status == ADJ_OK;
    return status;
}

/* Prepares all candidates. *late: set if time ran out before the last one. */
static adj_status enter_all(adj_exec *e, race *r, const step *s, double deadline, int *late)
{
    candidate c = {.index = NONE};
    *late = 0;
    if (open_race(e, r, MAX_CANDIDATES) != ADJ_OK)
        return e->status;
    while (!*late && next_group_kernel(e, s, &c) == ADJ_OK)
        while (!*late && r->n < MAX_CANDIDATES && enter(e, r, s, &c) == ADJ_OK) {
            c.number++;
            *late = seconds_now() > deadline;
        }
    return e->status;
}

static adj_status make_room(adj_exec *e, race *r)
{
    for (int i = 0; i < r->n && e->status == ADJ_OK; i++)
        make_areas(e, &r->list[i].s);
    for (int i = 0; i < r->n && e->status == ADJ_OK; i++)
        bind_step(e, &r->list[i].s);
    return e->status;
}

static double fastest(const race *r)
{
    double best = HUGE_VAL;
    for (int i = 0; i < r->n; i++)
        best = r->list[i].best < best ? r->list[i].best : best;
    return best;
}

/* Runs the candidates in turns; what takes far longer than the best so far is left out from then
 * on. 0: there was no time to run each of them. */
static int run_race(adj_exec *e, race *r, double deadline)
{
    int rounds = ROUNDS;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < r->n; i++) {
            timed_candidate *c = &r->list[i];
            if (c->dropped)
                continue;
            if (seconds_now() > deadline)
                return round > 0;
            double took = tune_run(e, &c->s);
            e->details.timed += round == 0;
            c->best = took < c->best ? took : c->best;
            c->dropped = c->best > hopeless[round > 0] * fastest(r);
        }
        if (fastest(r) > long_run)
            rounds = 2;
    }
    return 1;
}

/* ---- what stays ---- */

/* Adds the seconds of a reorder between two layouts, by way of plain. */
static adj_status add_reorder(adj_exec *e, const adj_node *value, buffer from, buffer to,
                              double *seconds)
{
    if (from.layout == to.layout || e->status != ADJ_OK)
        return e->status;
    if (from.layout != NULL && to.layout != NULL) {
        add_reorder(e, value, from, (buffer){0}, seconds);
        return add_reorder(e, value, (buffer){0}, to, seconds);
    }
    const reorder_cost wanted = {.type = value->type,
                                 .backend = from.layout != NULL ? from.backend : to.backend,
                                 .from = from.layout,
                                 .to = to.layout,
                                 .is_free = is_invariant(e, value)};
    return tune_reorder(e, &wanted, seconds);
}

/* Adds the seconds of the reorders at the candidate's borders. */
static adj_status add_borders(adj_exec *e, const step *s, double *seconds)
{
    buffer own = {.backend = s->backend};
    for (int i = 0; i < s->n_in; i++) {
        const adj_node *value = s->group.in[i];
        own.layout = s->prep.in[i];
        if (find_buffer(e, value, own.layout) == NONE)
            add_reorder(e, value, e->plan.buffer[source_buffer(e, value)], own, seconds);
    }
    for (int i = 0; i < s->n_out; i++) {
        own.layout = s->prep.out[i];
        add_reorder(e, s->group.out[i], own, (buffer){0}, seconds);
    }
    return e->status;
}

static adj_status keep_winner(adj_exec *e, const timed_candidate *t, tune_entry *winner)
{
    char impl[TUNE_IMPL];
    tune_impl(e, &t->s, impl);
    winner->backend = e->backends.list[t->s.backend]->name;
    winner->kernel = t->s.kernel->name;
    winner->candidate = t->number;
    winner->seconds = t->best;
    winner->impl = region_string(e->planning->tuner->region, impl);
    return winner->impl != NULL ? ADJ_OK : no_memory(e);
}

/* Finds the winner. A candidate other than the untuned one must be faster by more than the noise.
 */
static adj_status keep_fastest(adj_exec *e, const race *r, tune_entry *winner)
{
    const timed_candidate *usual = r->list, *best = NULL;
    double least = HUGE_VAL;
    for (int i = 1; i < r->n; i++)
        usual = r->list[i].s.prep.seconds < usual->s.prep.seconds ? &r->list[i] : usual;
    for (const timed_candidate *t = r->list; t < r->list + r->n && e->status == ADJ_OK; t++) {
        double seconds = t == usual ? clearly * t->best : t->best;
        if (!is_fallback(e, t->s.backend) && seconds < least &&
            add_borders(e, &t->s, &seconds) == ADJ_OK && seconds < least) {
            least = seconds;
            best = t;
        }
    }
    return e->status == ADJ_OK && best != NULL ? keep_winner(e, best, winner) : e->status;
}

/* ---- how much time there is ---- */

/* Times a run of what would be taken without timing, HUGE_VAL: of none; and preparing it. */
static adj_status time_usual(adj_exec *e, const step *s, double *run, double *preparing)
{
    race r;
    const double start = seconds_now();
    *run = HUGE_VAL;
    timed_candidate *t = open_race(e, &r, 1) == ADJ_OK ? new_candidate(e, &r, s) : NULL;
    if (t != NULL && select_by_estimate(e, &t->s) == ADJ_OK) {
        r.n = 1;
        *preparing = seconds_now() - start;
        if (make_room(e, &r) == ADJ_OK)
            for (int i = 0; i < 2; i++) /* the first has new memory */
                *run = fmin(*run, tune_run(e, &t->s));
    }
    close_race(e, &r);
    return e->status;
}

/* Returns the seconds that a race for the group may take; 0: it has no use. Of a group that no
 * kernel takes x->seconds stays 0. */
static double allow(adj_exec *e, const step *s, tune_entry *x)
{
    const tuner *t = e->planning->tuner;
    double run = HUGE_VAL, preparing = 0;
    if (t->runs == HUGE_VAL)
        return budget_for(e, &s->group, HUGE_VAL);
    if (time_usual(e, s, &run, &preparing) != ADJ_OK || run == HUGE_VAL)
        return 0;
    const double seconds = budget_for(e, &s->group, run), min = 2 * (preparing + 2 * run);
    x->seconds = run;
    x->too_few = seconds > min ? seconds : min;
    return seconds > min ? seconds : 0;
}

adj_status tune_race(adj_exec *e, const step *s, tune_entry *winner, int *late)
{
    tuner *t = e->planning->tuner;
    race r = {.n = 0};
    const double start = seconds_now(), seconds = allow(e, s, winner);
    const int is_refused = seconds == 0 && winner->seconds == 0 && s->group.n_node > 1;
    *late = seconds == 0 && !is_refused;
    if (seconds > 0 && e->status == ADJ_OK)
        enter_all(e, &r, s, start + seconds / 2, late);
    if (!*late && e->status == ADJ_OK && r.n == 1)
        r.list[0].best = 0; /* it was not timed, and need not be */
    else if (!*late && e->status == ADJ_OK && r.n > 1 && make_room(e, &r) == ADJ_OK)
        *late = !run_race(e, &r, start + seconds);
    if (!*late && e->status == ADJ_OK && r.n > 0)
        keep_fastest(e, &r, winner);
    close_race(e, &r);
    t->spent += seconds_now() - start;
    return e->status;
}
