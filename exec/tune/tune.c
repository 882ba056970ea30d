/* tune.c - the fastest candidate for a group: from a selection, from the file, or found by timing
 * all of them.
 *
 * Candidates are whatever the kernels of the backends that are queried prepare to, fallbacks left
 * out, each with the cost of the reorders that it would cause at its borders. They run in turns, so
 * that a disturbance hits all of them; the minimum of each counts. Equal groups are timed once,
 * time is bounded for the whole plan, and the candidate that would be taken without timing is
 * preferred unless another is clearly faster. Where the plan is to run few times only, that
 * candidate is run first, and says how much time the race may take (budget.c). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/hash.h"
#include "tune.h"

enum { ROUNDS = 5 };
/* How many times the best's time leaves a candidate out after the first round, the second, others:
 * a first run may have been disturbed, three in turns hardly. */
static const double hopeless[] = {4, 2, 1.25};
static const double default_seconds = 5, clearly = 0.98, long_run = 0.02;

typedef struct {
    step s;
    candidate c;          /* what s is prepared as */
    double borders, best; /* best: with the borders; HUGE_VAL: not run */
    int dropped;          /* out of the race */
} timed_candidate;

typedef struct {
    region region; /* of this group */
    int n;
    timed_candidate *list;
} race;

/* ---- once for a plan ---- */

/* The file in a folder: one for each machine and version, as home directories are shared. */
static char *file_in(tuner *t, const char *folder)
{
    size_t size = strlen(folder) + sizeof "tune-0123456789abcdef.txt";
    char *path = region_alloc(&t->region, size, 1);
    if (path != NULL)
        snprintf(path, size, "%stune-%016llx.txt", folder,
                 (unsigned long long)hash_text(HASH_START, t->header));
    return path;
}

static adj_status open_file(adj_exec *e, const adj_exec_opts *o)
{
    tuner *t = e->tuner;
    const char *path = o->tune_file != NULL ? o->tune_file : getenv("ADJOINT_TUNE");
    if (path == NULL || path[0] == '\0' || (o->tune_file == NULL && strcmp(path, "off") == 0))
        return ADJ_OK;
    tune_header(e, t->header);
    t->makes_folders = path[strlen(path) - 1] == '/';
    t->path = t->makes_folders ? file_in(t, path) : region_string(&t->region, path);
    return t->path != NULL ? tune_read(e) : ADJ_ENOMEM;
}

adj_status tune_open(adj_exec *e, const adj_exec_opts *o)
{
    if (!o->tune && (o->selection == NULL || o->selection[0] == '\0'))
        return ADJ_OK;
    if (!(o->tune_seconds >= 0 && o->tune_seconds <= 1e6))
        return set_error(e, ADJ_EARG,
                         "adj_exec_new: tune_seconds is wrong (got %g, expected 0 to 1e6)",
                         o->tune_seconds);
    if (o->tune_runs < 0)
        return set_error(e, ADJ_EARG,
                         "adj_exec_new: tune_runs is wrong (got %lld, expected 0 or more)",
                         (long long)o->tune_runs);
    tuner *t = e->tuner = adj_alloc(&e->region.allocator, sizeof *t);
    if (t == NULL)
        return no_memory(e);
    t->region.allocator = e->region.allocator;
    t->may_time = o->tune != 0;
    t->seconds = o->tune_seconds > 0 ? o->tune_seconds : default_seconds;
    budget_open(e, o->tune_runs);
    for (int id = 0; id < e->graph->n_node; id++)
        if (__builtin_add_overflow(t->cold, value_bytes(e, e->graph->node[id]->type, NULL, NONE),
                                   &t->cold))
            t->cold = SIZE_MAX;
    if (tune_read_selection(e, o->selection) != ADJ_OK || (o->tune && open_file(e, o) != ADJ_OK))
        return no_memory(e);
    return ADJ_OK;
}

void tune_close(adj_exec *e)
{
    tuner *t = e->tuner;
    if (t == NULL)
        return;
    if (e->status == ADJ_OK)
        tune_write(e);
    if (e->status == ADJ_OK && (e->selection = tune_selection(e)) == NULL)
        no_memory(e);
    e->info.timed_seconds = t->spent;
    if (t->left > 0 && t->runs == HUGE_VAL && e->warning[0] == '\0')
        snprintf(e->warning, sizeof e->warning,
                 "tune: %g seconds were too short, up to %d steps have the usual choice",
                 t->seconds, t->left);
    tune_free_areas(e);
    region_free(&t->region);
    adj_release(&e->region.allocator, t);
    e->tuner = NULL;
}

/* ---- a race between candidates ---- */

/* s with arrays of its own, to be prepared; NULL: out of memory. */
static timed_candidate *new_candidate(adj_exec *e, race *r, const step *s)
{
    timed_candidate *t = &r->list[r->n];
    size_t n_in = (size_t)s->group.n_in, n_out = (size_t)s->group.n_out;
    *t = (timed_candidate){.s = *s, .best = HUGE_VAL};
    void **room = region_alloc(&r->region, 2 * (n_in + n_out), sizeof *room);
    t->s.call.message = region_alloc(&r->region, ADJ_WHY, 1);
    if (room == NULL || t->s.call.message == NULL) {
        no_memory(e);
        return NULL;
    }
    t->s.prep.in = (const adj_layout **)room;
    t->s.prep.out = (const adj_layout **)(room + n_in);
    t->s.call.in = (const void *const *)(room + n_in + n_out);
    t->s.call.out = room + 2 * n_in + n_out;
    return t;
}

/* Prepares the candidate in the next place. ADJ_ENOKERNEL: it refuses, or is a fallback where there
 * is something else. */
static adj_status enter(adj_exec *e, race *r, const step *s, candidate *c)
{
    timed_candidate *t = new_candidate(e, r, s);
    if (t == NULL)
        return e->status;
    adj_status status = prepare_step(e, &t->s, c);
    if (status == ADJ_OK && t->s.prep.rank >= ADJ_RANK_FALLBACK && r->n > 0) {
        drop_candidate(c);
        return ADJ_ENOKERNEL;
    }
    t->c = *c;
    r->n += status == ADJ_OK;
    return status;
}

static adj_status open_race(adj_exec *e, race *r, int places)
{
    *r = (race){.region = {.allocator = e->region.allocator}};
    r->list = region_alloc(&r->region, (size_t)places, sizeof *r->list);
    return r->list != NULL ? ADJ_OK : no_memory(e);
}

/* *late: there was no time to prepare all of them. */
static adj_status enter_all(adj_exec *e, race *r, const step *s, const node_group *g,
                            double deadline, int *late)
{
    candidate c = {.index = NONE};
    *late = 0;
    if (open_race(e, r, MAX_CANDIDATES) != ADJ_OK)
        return e->status;
    while (!*late && next_group_kernel(e, g, &c) == ADJ_OK)
        while (!*late && r->n < MAX_CANDIDATES && enter(e, r, s, &c) == ADJ_OK) {
            c.number++;
            *late = seconds_now() > deadline;
        }
    return e->status;
}

static adj_status make_room(adj_exec *e, race *r)
{
    for (int i = 0; i < r->n; i++) {
        timed_candidate *t = &r->list[i];
        if (tune_borders(e, &t->s, &t->borders) != ADJ_OK || make_areas(e, &t->s, &t->c) != ADJ_OK)
            return e->status;
    }
    for (int i = 0; i < r->n; i++)
        bind_step(e, &r->list[i].s, &r->list[i].c);
    return ADJ_OK;
}

static double fastest(const race *r)
{
    double best = HUGE_VAL;
    for (int i = 0; i < r->n; i++)
        best = r->list[i].best < best ? r->list[i].best : best;
    return best;
}

/* In turns; what takes far longer than the best is left out after its first run, or, as that may
 * have been disturbed, after its second. 0: there was no time to run each of them. */
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
            double took = tune_run(e, &c->s) + c->borders;
            e->info.timed += round == 0;
            c->best = took < c->best ? took : c->best;
            c->dropped = c->best > hopeless[round < 2 ? round : 2] * fastest(r);
        }
        if (fastest(r) > long_run)
            rounds = 2;
    }
    return 1;
}

/* The one without timing, unless another is clearly faster; NULL: none could be run. */
static const timed_candidate *winner(const race *r)
{
    const timed_candidate *usual = r->list, *best = r->list;
    for (int i = 1; i < r->n; i++) {
        const timed_candidate *t = &r->list[i];
        usual = t->s.prep.rank < usual->s.prep.rank ? t : usual;
        best = t->best < best->best ? t : best;
    }
    if (best->best == HUGE_VAL)
        return NULL;
    return best->best < clearly * usual->best ? best : usual;
}

/* ---- the winner is selected ---- */

static adj_status record(adj_exec *e, const char *key, const timed_candidate *t)
{
    char impl[TUNE_IMPL] = "";
    tune_entry entry = {.key = key, .impl = impl};
    if (t != NULL) {
        tune_impl(e, &t->s, impl);
        entry = (tune_entry){.key = key,
                             .backend = t->c.backend->name,
                             .kernel = t->c.kernel->name,
                             .candidate = t->c.number,
                             .impl = impl,
                             .seconds = t->best};
        e->tuner->changed = 1;
    }
    return tune_add(e->tuner, &entry) == ADJ_OK ? ADJ_OK : no_memory(e);
}

/* Seconds of a run of what would be taken without timing, HUGE_VAL: of none; and of preparing it.
 */
static adj_status time_usual(adj_exec *e, const step *s, const node_group *g, double *run,
                             double *preparing)
{
    race r;
    double start = seconds_now();
    *run = HUGE_VAL;
    timed_candidate *t = open_race(e, &r, 1) == ADJ_OK ? new_candidate(e, &r, s) : NULL;
    if (t != NULL && select_by_rank(e, &t->s, g) == ADJ_OK) {
        t->c = (candidate){.backend = e->backend[t->s.backend],
                           .opened = e->opened[t->s.backend],
                           .index = t->s.backend,
                           .group = &t->s.group,
                           .kernel = t->s.kernel,
                           .prep = &t->s.prep};
        *preparing = seconds_now() - start;
        if (make_areas(e, &t->s, &t->c) == ADJ_OK) {
            bind_step(e, &t->s, &t->c);
            for (int i = 0; i < 2; i++) { /* the first has new memory */
                double took = tune_run(e, &t->s);
                *run = took < *run ? took : *run;
            }
        }
        drop_candidate(&t->c);
    }
    region_free(&r.region);
    return e->status;
}

/* Seconds that a race for the group may take; 0: it has no use. */
static double allow(adj_exec *e, const step *s, const node_group *g)
{
    const tuner *t = e->tuner;
    double run = HUGE_VAL, preparing = 0;
    if (t->runs == HUGE_VAL)
        return budget_for(t, g, HUGE_VAL);
    if (time_usual(e, s, g, &run, &preparing) != ADJ_OK || run == HUGE_VAL)
        return 0;
    const double seconds = budget_for(t, g, run);
    return seconds > 2 * (preparing + 2 * run) ? seconds : 0;
}

/* Times the group's candidates and records the winner, the only one, or that there was no time. */
static adj_status find_fastest(adj_exec *e, const step *s, const node_group *g, const char *key)
{
    tuner *t = e->tuner;
    race r = {.n = 0};
    const timed_candidate *won = NULL;
    const double start = seconds_now(), seconds = allow(e, s, g);
    int late = seconds == 0;
    if (!late && e->status == ADJ_OK &&
        enter_all(e, &r, s, g, start + seconds / 2, &late) == ADJ_OK && !late && r.n > 1 &&
        make_room(e, &r) == ADJ_OK) {
        late = !run_race(e, &r, start + seconds);
        won = late ? NULL : winner(&r);
    } else if (!late && e->status == ADJ_OK && r.n == 1) {
        r.list[0].best = 0; /* it was not timed, and need not be */
        won = r.list;
    }
    t->left += late;
    if (e->status == ADJ_OK)
        record(e, key, won);
    for (int i = 0; i < r.n; i++)
        drop_candidate(&r.list[i].c);
    region_free(&r.region);
    t->spent += seconds_now() - start;
    return e->status;
}

/* Is s prepared as the entry says, by its implementation and layouts? */
static int is_known(const adj_exec *e, const step *s, const tune_entry *x)
{
    char impl[TUNE_IMPL];
    tune_impl(e, s, impl);
    return strcmp(impl, x->impl) == 0 && s->prep.rank < ADJ_RANK_FALLBACK;
}

/* Prepares what the entry says. Its number is where the candidate was found; as a backend's list
 * may be another one today, all are looked at if it is not there. ADJ_ENOKERNEL: it is nowhere. */
static adj_status prepare_known(adj_exec *e, step *s, const node_group *g, const tune_entry *x)
{
    candidate c = {.index = NONE};
    adj_status status;
    do
        status = next_group_kernel(e, g, &c);
    while (status == ADJ_OK &&
           (strcmp(c.backend->name, x->backend) != 0 || strcmp(c.kernel->name, x->kernel) != 0));
    for (int i = -1; i < MAX_CANDIDATES && status == ADJ_OK; i++) {
        c.number = i < 0 ? x->candidate : i;
        status = prepare_step(e, s, &c);
        if (status == ADJ_OK && is_known(e, s, x))
            return ADJ_OK;
        if (status == ADJ_OK)
            drop_candidate(&c);
        else if (i < 0 && e->status == ADJ_OK)
            status = ADJ_OK; /* the list is shorter today */
    }
    return e->status == ADJ_OK ? ADJ_ENOKERNEL : e->status;
}

static adj_status take(adj_exec *e, step *s, const node_group *g, const tune_entry *x)
{
    adj_status status = prepare_known(e, s, g, x);
    int first = backend_for(e, g->node[0]->op, 0);
    if (status != ADJ_OK)
        return status;
    s->tuned = x->seconds;
    if (s->backend == first || g->n > 1)
        return ADJ_OK;
    char why[ADJ_WHY];
    snprintf(why, sizeof why, "%s was slower when it was timed, or refused",
             e->backend[first]->name);
    if (set_why(e, s, why) != ADJ_OK)
        drop_prepared(e, s);
    return e->status;
}

/* What the table says of the group, if it says something. */
static adj_status take_known(adj_exec *e, step *s, const node_group *g, const char *key)
{
    tune_entry *x = tune_find(e->tuner, key);
    adj_status status = x != NULL && x->kernel != NULL ? take(e, s, g, x) : ADJ_ENOKERNEL;
    if (status == ADJ_OK) {
        x->used = 1;
        e->info.cached += x->origin != TIMED;
    }
    return status;
}

adj_status tune_group(adj_exec *e, step *s, const node_group *g)
{
    tuner *t = e->tuner;
    char key[TUNE_KEY];
    if (tune_key(e, &s->group, key) != ADJ_OK)
        return no_memory(e);
    const tune_entry *x = tune_find(t, key);
    int is_new = x == NULL || (x->origin != TIMED && !x->used);
    adj_status status = take_known(e, s, g, key);
    if (status == ADJ_ENOKERNEL && (x == NULL || x->kernel != NULL)) {
        if (!budget_is_open(t))
            t->left += t->may_time;
        else if (find_fastest(e, s, g, key) == ADJ_OK)
            status = take_known(e, s, g, key);
        else
            status = e->status;
    }
    if (is_new)
        budget_pass(t, g);
    return status;
}
