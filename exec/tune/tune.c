/* tune.c - selects the kernel of each group of a plan from a selection, from the tune file, or by
 * timing.
 *
 * When the plan reaches a group that is in neither, its candidates are timed (race.c), within a
 * limit for the whole plan. Equal groups are timed once and get the same winner.
 *
 * The time of the whole plan is divided among the groups that are still undecided: half of it by
 * their work, half equally, as preparing candidates takes time however small the group is. So time
 * remains for the last groups, and what one group does not use goes to the others. Groups of equal
 * work are timed and counted once. If the number of runs of the plan is known, the limit is also a
 * small fraction of the group's time in all these runs: timing could not save more. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/hash.h"
#include "base/machine/machine.h"
#include "tune.h"

static const double default_seconds = 5;

/* ---- time limits ---- */

static const double part_of_runs = 0.02;
enum { FEWEST_RUNS = 4 }; /* two candidates, twice each */

/* About what one run takes, in seconds: only the ratio counts, between groups of one graph. */
static double work_of(int n, const adj_node *const node[])
{
    double seconds = 0;
    for (int i = 0; i < n; i++) {
        const adj_node *const *in = (const adj_node *const *)node[i]->in;
        seconds +=
            nominal_of_group(&(adj_group){1, &node[i], node[i]->n_in, in, 1, &node[i]}).seconds;
    }
    return seconds;
}

static int is_same_node(const adj_node *a, const adj_node *b)
{
    int same = a->op == b->op && a->n_in == b->n_in && is_same_type(a->type, b->type) &&
               memcmp(a->attrs, b->attrs, adj_attr_size(a->op)) == 0;
    for (int k = 0; k < a->n_in && same; k++)
        same = is_same_type(a->in[k]->type, b->in[k]->type);
    return same;
}

static int is_same_work(const node_group *a, const node_group *b)
{
    int same = a->n == b->n;
    for (int i = 0; i < a->n && same; i++)
        same = is_same_node(a->node[i], b->node[i]);
    return same;
}

/* Counts the groups to decide. runs: number of runs of the plan; 0: unknown. Requires: groups. */
static void budget_open(adj_exec *e, int64_t runs)
{
    tuner *t = e->planning->tuner;
    t->runs = runs > 0 ? (double)runs * part_of_runs : HUGE_VAL;
    for (int i = 0; i < e->planning->n_group && budget_is_open(t); i++) {
        const node_group *g = &e->planning->group[i];
        int k = 0;
        while (k < i && !is_same_work(&e->planning->group[k], g))
            k++;
        int is_view = g->n == 1 && (g->node[0]->op->flags & ADJ_OP_VIEW);
        if (k < i || is_view)
            continue;
        t->work_left += work_of(g->n, g->node);
        t->groups_left++;
    }
}

int budget_is_open(const tuner *t)
{
    return t->may_time && t->spent < t->seconds && t->runs >= FEWEST_RUNS;
}

double budget_for(const adj_exec *e, const adj_group *g, double untuned)
{
    const tuner *t = e->planning->tuner;
    const double left = t->seconds - t->spent, work = work_of(g->n_node, g->node);
    const double by_work = t->work_left > work ? work / t->work_left : 1;
    const double equal = t->groups_left > 1 ? 1.0 / t->groups_left : 1;
    const double share = left * (by_work + equal) / 2;
    const double gain = t->runs == HUGE_VAL ? HUGE_VAL : t->runs * untuned;
    return share < gain ? share : gain;
}

/* Removes a decided group from the count. */
static void budget_pass(adj_exec *e, const adj_group *g)
{
    e->planning->tuner->work_left -= work_of(g->n_node, g->node);
    e->planning->tuner->groups_left--;
}

/* ---- once for a plan ---- */

/* Returns the file in a folder: one for each machine and version, as home directories are shared.
 */
static char *file_in(tuner *t, const char *folder)
{
    size_t size = strlen(folder) + sizeof "tune-0123456789abcdef.txt";
    char *path = region_alloc(t->region, size, 1);
    if (path != NULL)
        snprintf(path, size, "%stune-%016llx.txt", folder,
                 (unsigned long long)hash_text(HASH_START, t->header));
    return path;
}

static adj_status open_file(adj_exec *e)
{
    const adj_exec_opts *o = &e->opts;
    tuner *t = e->planning->tuner;
    const char *path = o->tune_file != NULL ? o->tune_file : getenv("ADJOINT_TUNE");
    if (path == NULL || path[0] == '\0' || (o->tune_file == NULL && strcmp(path, "off") == 0))
        return ADJ_OK;
    tune_header(e, t->header);
    t->makes_folders = path[strlen(path) - 1] == '/';
    t->path = t->makes_folders ? file_in(t, path) : region_string(t->region, path);
    return t->path != NULL ? tune_read(e) : ADJ_ENOMEM;
}

/* Returns the bytes that the whole graph's values pass through: at most those of the last cache,
 * and no more than can be read before each run. */
static size_t cold_bytes(const adj_exec *e)
{
    const size_t usual = (size_t)32 << 20, max = (size_t)64 << 20;
    const machine_facts machine = machine_look("");
    const size_t shared = machine_shared_cache(&machine), cache = shared > 0 ? shared : usual;
    size_t bytes = 0;
    for (int id = 0; id < e->plan.graph->n_node; id++)
        if (__builtin_add_overflow(bytes, adj_type_bytes(e->plan.graph->node[id]->type), &bytes))
            bytes = SIZE_MAX;
    bytes = bytes < cache ? bytes : cache;
    return bytes < max ? bytes : max;
}

adj_status tune_open(adj_exec *e)
{
    const adj_exec_opts *o = &e->opts;
    if (!o->tune && (e->internal.selection == NULL || e->internal.selection[0] == '\0'))
        return ADJ_OK;
    if (!(o->tune_seconds >= 0 && o->tune_seconds <= 1e6))
        return set_error(e, ADJ_EARG,
                         "adj_exec_new: tune_seconds is wrong (got %g, expected 0 to 1e6)",
                         o->tune_seconds);
    if (e->internal.tune_runs < 0)
        return set_error(e, ADJ_EARG,
                         "adj_exec_new: tune_runs is wrong (got %lld, expected 0 or more)",
                         (long long)e->internal.tune_runs);
    tuner *t = e->planning->tuner = planning_alloc(e, 1, sizeof *t);
    if (t == NULL)
        return e->status;
    t->region = &e->planning->region;
    t->may_time = o->tune != 0;
    t->seconds = o->tune_seconds > 0 ? o->tune_seconds : default_seconds;
    if (tune_read_selection(e, e->internal.selection) != ADJ_OK ||
        (o->tune && open_file(e) != ADJ_OK))
        return no_memory(e);
    if (t->may_time)
        t->cold = cold_bytes(e);
    budget_open(e, e->internal.tune_runs);
    return ADJ_OK;
}

void tune_close(adj_exec *e)
{
    tuner *t = e->planning->tuner;
    if (t == NULL)
        return;
    if (e->status == ADJ_OK && (e->selection = tune_selection(e)) == NULL)
        no_memory(e);
    if (e->status == ADJ_OK)
        tune_write(e);
    e->details.timed_seconds = t->spent;
    if (t->left > 0 && t->runs == HUGE_VAL && e->warning[0] == '\0')
        c_snprintf(e->warning, sizeof e->warning,
                   "tune: %g seconds were too short; up to %d steps keep their default kernels",
                   t->seconds, t->left);
    for (int k = 0; k < N_TUNE_AREA; k++)
        adj_release(&e->region.allocator, t->area[k].data);
}

/* ---- a candidate is found again ---- */

/* True if s is prepared as the entry says: by its implementation, and in the same layouts. Those
 * may differ if the kernel follows its operands, which were plain when it was timed. */
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
static adj_status prepare_known(adj_exec *e, step *s, const tune_entry *x, int in_any_layout)
{
    candidate c = {.index = NONE};
    adj_status status;
    do
        status = next_group_kernel(e, s, &c);
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

/* ---- a group of the plan takes what was decided ---- */

/* Prepares the winner, with why it is not the preferred backend's. */
static adj_status take(adj_exec *e, step *s, const tune_entry *x)
{
    adj_status status = prepare_known(e, s, x, 0);
    if (status == ADJ_ENOKERNEL)
        status = prepare_known(e, s, x, 1);
    int first = first_backend(e, s->group.node[0]->op);
    if (status != ADJ_OK)
        return status;
    s->tuned = x->seconds;
    if (s->backend == first || s->group.n_node > 1)
        return ADJ_OK;
    char why[ADJ_WHY];
    snprintf(why, sizeof why, "%s was slower when timed, or not supported",
             e->backends.list[first]->name);
    if (set_why(e, s, why) != ADJ_OK)
        drop_step(e, s);
    return e->status;
}

/* Takes what the table says of the group; ADJ_ENOKERNEL: nothing. */
static adj_status take_known(adj_exec *e, step *s, const char *key)
{
    tune_entry *x = tune_find(e->planning->tuner, key);
    adj_status status = x != NULL && x->kernel != NULL ? take(e, s, x) : ADJ_ENOKERNEL;
    if (status == ADJ_OK) {
        x->used = 1;
        e->details.cached += x->origin != TIMED;
    }
    return status;
}

/* ---- what is not known is timed ---- */

/* True if there is no winner, or none that can be prepared: a file may be forged, or a kernel
 * refuse the layouts that are there. A race that an earlier plan had no time for needs a larger
 * time limit than that plan's. */
static int is_open(adj_exec *e, const step *s, const tune_entry *x)
{
    const double clearly_more = 1.5;
    tuner *t = e->planning->tuner;
    if (x == NULL || x->kernel != NULL)
        return 1;
    if (x->is_met)
        return 0;
    const int is_worth_it =
        t->runs == HUGE_VAL || budget_for(e, &s->group, x->seconds) > clearly_more * x->too_few;
    t->left += t->may_time && !is_worth_it;
    return is_worth_it;
}

/* Records the fastest candidate, or that there is none or was no time. */
static adj_status time_group(adj_exec *e, const step *s, const char *key)
{
    tuner *t = e->planning->tuner;
    tune_entry winner = {.key = key, .impl = ""};
    int late = 0;
    if (!budget_is_open(t)) {
        t->left += t->may_time;
        return ADJ_OK;
    }
    if (tune_race(e, s, &winner, &late) != ADJ_OK)
        return e->status;
    t->left += late;
    t->changed |= winner.kernel != NULL || winner.too_few > 0;
    return tune_add(t, &winner) == ADJ_OK ? ADJ_OK : no_memory(e);
}

adj_status tune_group(adj_exec *e, step *s)
{
    tuner *t = e->planning->tuner;
    char key[TUNE_KEY];
    if (has_collective(s->group.n_node, s->group.node))
        return ADJ_ENOKERNEL;
    if (tune_key(e, &s->group, key) != ADJ_OK)
        return no_memory(e);
    adj_status status = take_known(e, s, key);
    tune_entry *x = tune_find(t, key);
    const int is_first = x == NULL || !x->is_met;
    if (status == ADJ_ENOKERNEL && is_open(e, s, x)) {
        status = time_group(e, s, key);
        if (status == ADJ_OK)
            status = take_known(e, s, key);
    }
    if ((x = tune_find(t, key)) != NULL)
        x->is_met = 1;
    if (is_first)
        budget_pass(e, &s->group);
    return status;
}
