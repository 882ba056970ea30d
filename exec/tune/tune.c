/* tune.c - which kernel computes each group of a plan: by a selection, by the file, or by timing
 * them.
 *
 * Before there are steps every group is looked at in the plan's order. What is not known is timed
 * (race.c), equal groups once, within a time that is bounded for the whole plan (budget.c). Then
 * all that was timed is decided together (joint.c), and the plan takes the winners group by group.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "graph/hash.h"
#include "tune.h"

static const double default_seconds = 5;

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

/* Bytes of what the whole graph's values pass through: at most those of the last cache, and no more
 * than can be read before each run. */
static size_t cold_bytes(const adj_exec *e)
{
    const size_t usual = (size_t)32 << 20, max = (size_t)64 << 20;
    const machine_facts machine = machine_look("");
    const size_t shared = machine_shared_cache(&machine), cache = shared > 0 ? shared : usual;
    size_t bytes = 0;
    for (int id = 0; id < e->graph->n_node; id++)
        if (__builtin_add_overflow(bytes, value_bytes(e, e->graph->node[id]->type, NULL, NONE),
                                   &bytes))
            bytes = SIZE_MAX;
    bytes = bytes < cache ? bytes : cache;
    return bytes < max ? bytes : max;
}

/* How fast the machine is, once for a file and a number of threads, by which the time is shared.
 * Only where there is something to time, and if it is a small part of what tuning may take. */
static void measure_machine(adj_exec *e)
{
    const double seconds = 0.15; /* that it takes, about */
    tuner *t = e->tuner;
    if (t->speed.threads == e->threads || t->path == NULL || !t->may_write ||
        !budget_allows(t, seconds))
        return;
    const machine_facts machine = machine_look("");
    t->speed = machine_measure(&machine, e->threads);
    t->speed.threads = e->threads; /* there may be fewer, always */
    t->spent += t->speed.seconds;
    t->changed = 1;
    t->roofline = roofline_measured(&t->speed);
    budget_count(e);
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
    if (tune_read_selection(e, o->selection) != ADJ_OK || (o->tune && open_file(e, o) != ADJ_OK))
        return no_memory(e);
    if (t->may_time)
        t->cold = cold_bytes(e);
    t->roofline = t->speed.threads == e->threads ? roofline_measured(&t->speed) : e->roofline;
    budget_open(t, o->tune_runs);
    return ADJ_OK;
}

void tune_pause(adj_exec *e)
{
    if (e->tuner != NULL)
        tune_free_areas(e);
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
        c_snprintf(e->warning, sizeof e->warning,
                   "tune: %g seconds were too short, up to %d steps have the usual choice",
                   t->seconds, t->left);
    tune_free_areas(e);
    region_free(&t->region);
    adj_release(&e->region.allocator, t);
    e->tuner = NULL;
}

/* ---- what is to be decided ---- */

static int find_decision(const tuner *t, const char *key)
{
    for (int i = 0; i < t->n_decision; i++)
        if (strcmp(t->decision[i].key, key) == 0)
            return i;
    return NONE;
}

static adj_status add_decision(adj_exec *e, const char *key, const tune_decision *d, int *number)
{
    tuner *t = e->tuner;
    tune_decision *list =
        region_grow(&t->region, t->decision, t->n_decision, &t->max_decision, sizeof *list);
    if (list == NULL)
        return no_memory(e);
    t->decision = list;
    list[t->n_decision] = *d;
    if ((list[t->n_decision].key = region_string(&t->region, key)) == NULL)
        return no_memory(e);
    *number = t->n_decision++;
    return ADJ_OK;
}

/* way NULL: there was no time, and is none later in this plan. */
static adj_status record(adj_exec *e, const char *key, const tune_decision *d, const tune_way *way)
{
    tune_entry entry = {.key = key, .impl = "", .seconds = d->usual, .too_few = d->too_few};
    if (way != NULL)
        entry = (tune_entry){.key = key,
                             .backend = way->backend,
                             .kernel = way->kernel,
                             .candidate = way->candidate,
                             .impl = way->impl,
                             .seconds = way->seconds};
    e->tuner->changed |= way != NULL || d->too_few > 0;
    return tune_add(e->tuner, &entry) == ADJ_OK ? ADJ_OK : no_memory(e);
}

static adj_status look_at(adj_exec *e, const node_group *g, tune_part *part);

/* No kernel takes the group, as plan.c will find again. */
static adj_status look_at_each(adj_exec *e, const node_group *g)
{
    for (int i = 0; i < g->n; i++) {
        const node_group one = {.n = 1, .node = &g->node[i], .backend = NONE};
        tune_part part;
        if (look_at(e, &one, &part) != ADJ_OK)
            return e->status;
    }
    return ADJ_OK;
}

/* Times the group's candidates if there is time. */
static adj_status open_decision(adj_exec *e, const step *s, const node_group *g, const char *key,
                                int *number)
{
    tuner *t = e->tuner;
    tune_decision d = {.n = 0};
    int late = 0;
    if (!budget_is_open(t)) {
        t->left += t->may_time;
        return ADJ_OK;
    }
    measure_machine(e);
    if (tune_race(e, s, g, &d, &late) != ADJ_OK)
        return e->status;
    t->left += late;
    if (d.n > 0)
        return add_decision(e, key, &d, number);
    if (!late && g->n > 1 && look_at_each(e, g) != ADJ_OK)
        return e->status;
    return record(e, key, &d, NULL);
}

/* Is it to be decided? If an earlier plan had no time, only with clearly more than was too few. */
static int is_open(tuner *t, const node_group *g, const tune_entry *x)
{
    const double clearly_more = 1.5;
    if (x == NULL || x->kernel != NULL)
        return x == NULL;
    const int is_worth_it =
        t->runs == HUGE_VAL || budget_for(t, g, x->seconds) > clearly_more * x->too_few;
    t->left += t->may_time && !is_worth_it;
    return is_worth_it;
}

static adj_status look_at(adj_exec *e, const node_group *g, tune_part *part)
{
    tuner *t = e->tuner;
    char key[TUNE_KEY];
    step s = {.kind = STEP_KERNEL};
    if (describe_step(e, g, &s) != ADJ_OK)
        return e->status;
    *part = (tune_part){s.group, NONE};
    if ((g->n == 1 && (g->node[0]->op->flags & ADJ_OP_VIEW)) || is_empty(&s.group) ||
        has_collective(g->n, g->node))
        return ADJ_OK;
    if (tune_key(e, "", &s.group, key) != ADJ_OK)
        return no_memory(e);
    tune_entry *x = tune_find(t, key);
    part->decision = find_decision(t, key);
    if (part->decision != NONE || (x != NULL && x->is_met))
        return ADJ_OK;
    if (is_open(t, g, x) && open_decision(e, &s, g, key, &part->decision) != ADJ_OK)
        return e->status;
    if ((x = tune_find(t, key)) != NULL)
        x->is_met = 1;
    budget_pass(t, g);
    return e->status;
}

/* ---- a candidate is found again ---- */

/* Is s prepared as the entry says: by its implementation, and in the same layouts? Those may differ
 * if the kernel follows its operands, which were plain when it was timed. */
static int is_known(const adj_exec *e, const step *s, const tune_entry *x, int in_any_layout)
{
    char impl[TUNE_IMPL];
    const size_t name = tune_impl(e, s, impl);
    if (is_fallback(e, s->backend))
        return 0;
    if (!in_any_layout)
        return strcmp(impl, x->impl) == 0;
    return strncmp(impl, x->impl, name) == 0 && (x->impl[name] == ' ' || x->impl[name] == '\0');
}

/* Prepares what the entry says. Its number is where the candidate was found; as a backend's list
 * may be another one today, all are looked at if it is not there. ADJ_ENOKERNEL: it is nowhere. */
static adj_status prepare_known(adj_exec *e, step *s, const node_group *g, const tune_entry *x,
                                int in_any_layout)
{
    candidate c = {.index = NONE, .is_spare = 1};
    adj_status status;
    do
        status = next_group_kernel(e, g, &c);
    while (status == ADJ_OK &&
           (strcmp(c.backend->name, x->backend) != 0 || strcmp(c.kernel->name, x->kernel) != 0));
    for (int i = -1; i < MAX_CANDIDATES && status == ADJ_OK; i++) {
        c.number = i < 0 ? x->candidate : i;
        status = prepare_step(e, s, &c);
        if (status == ADJ_OK && is_known(e, s, x, in_any_layout))
            return ADJ_OK;
        if (status == ADJ_OK)
            drop_candidate(&c);
        else if (i < 0 && e->status == ADJ_OK)
            status = ADJ_OK; /* the list is shorter today */
    }
    return e->status == ADJ_OK ? ADJ_ENOKERNEL : e->status;
}

/* ---- all that is open is decided ---- */

/* Neighbours that are known have layouts, too: a decision with one way. */
static adj_status adopt_known(adj_exec *e, const node_group *g, tune_part *part)
{
    char key[TUNE_KEY];
    step s = {.kind = STEP_KERNEL};
    if (tune_key(e, "", &part->group, key) != ADJ_OK)
        return no_memory(e);
    const tune_entry *x = tune_find(e->tuner, key);
    part->decision = find_decision(e->tuner, key);
    if (part->decision != NONE || x == NULL || x->kernel == NULL)
        return ADJ_OK;
    if (describe_step(e, g, &s) != ADJ_OK)
        return e->status;
    const adj_status status = prepare_known(e, &s, g, x, 0);
    if (status != ADJ_OK)
        return status == ADJ_ENOKERNEL ? ADJ_OK : status;
    tune_way *way = region_alloc(&e->tuner->region, 1, sizeof *way);
    const tune_decision d = {.n = 1, .way = way};
    drop_prepared(e, &s);
    if (way == NULL)
        return no_memory(e);
    *way = (tune_way){.index = s.backend, .in = s.prep.in, .out = s.prep.out};
    return add_decision(e, key, &d, &part->decision);
}

static adj_status decide_all(adj_exec *e)
{
    tuner *t = e->tuner;
    const int n_open = t->n_decision;
    for (int i = 0; i < e->n_group && n_open > 0; i++)
        if (t->part[i].decision == NONE && adopt_known(e, &e->group[i], &t->part[i]) != ADJ_OK)
            return e->status;
    int *chosen = region_alloc(&t->region, (size_t)t->n_decision, sizeof *chosen);
    if (chosen == NULL)
        return no_memory(e);
    if (n_open > 0 && tune_decide(e, chosen) != ADJ_OK)
        return e->status;
    for (int i = 0; i < n_open && e->status == ADJ_OK; i++)
        record(e, t->decision[i].key, &t->decision[i], &t->decision[i].way[chosen[i]]);
    return e->status;
}

adj_status tune_groups(adj_exec *e)
{
    tuner *t = e->tuner;
    if (t == NULL || e->impl != NULL)
        return ADJ_OK;
    t->part = region_alloc(&t->region, (size_t)e->n_group, sizeof *t->part);
    if (t->part == NULL)
        return no_memory(e);
    budget_count(e);
    for (; t->next < e->n_group; t->next++)
        if (look_at(e, &e->group[t->next], &t->part[t->next]) != ADJ_OK)
            return e->status;
    return decide_all(e);
}

/* ---- a group of the plan takes what was decided ---- */

static adj_status take(adj_exec *e, step *s, const node_group *g, const tune_entry *x)
{
    adj_status status = prepare_known(e, s, g, x, 0);
    if (status == ADJ_ENOKERNEL)
        status = prepare_known(e, s, g, x, 1);
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

/* What was decided cannot be prepared, as a file is forged, or a kernel refuses the layouts that
 * are there: the group is timed by itself. */
static adj_status decide_alone(adj_exec *e, const step *s, const node_group *g, const char *key)
{
    tuner *t = e->tuner;
    tune_decision d = {.n = 0};
    int late = 0;
    if (!budget_is_open(t)) {
        t->left += t->may_time;
        return ADJ_OK;
    }
    if (tune_race(e, s, g, &d, &late) != ADJ_OK)
        return e->status;
    t->left += late;
    const tune_way *best = d.n > 0 ? d.way : NULL;
    for (int i = 1; i < d.n; i++)
        best = tune_weight(&d.way[i]) < tune_weight(best) ? &d.way[i] : best;
    return record(e, key, &d, best);
}

adj_status tune_group(adj_exec *e, step *s, const node_group *g)
{
    char key[TUNE_KEY];
    if (tune_key(e, "", &s->group, key) != ADJ_OK)
        return no_memory(e);
    const adj_status status = take_known(e, s, g, key);
    const tune_entry *x = tune_find(e->tuner, key);
    if (status != ADJ_ENOKERNEL || x == NULL || x->kernel == NULL)
        return status;
    return decide_alone(e, s, g, key) == ADJ_OK ? take_known(e, s, g, key) : e->status;
}
