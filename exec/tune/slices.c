/* slices.c - is a group of nodes faster in slices (exec/slices/), or when each of its kernels has
 * the whole batch? Both are planned without tuning and run beside each other, as candidates of one
 * group are (race.c), before there are groups.
 *
 * Unlike there it is the second of two runs that counts: in a step the memory between nodes was
 * used just before, and where it fits the last cache the whole batch finds it there. */
#include <math.h>
#include <string.h>

#include "exec/slices/slices.h"
#include "tune.h"

enum { ROUNDS = 5, WAYS = 2, RUNS = 2 * WAYS * ROUNDS };
/* Slices are to be clearly faster, as what they are compared with may be tuned further; less so
 * where they are taken unasked. */
static const double clearly = 0.92, somewhat = 0.97;
/* Of the time that a plan may be tuned for, which kernels need as well. */
static const double part_of_time = 0.3;
/* So long planning both takes, about. */
static const double planning = 0.05;
/* Of operands and results together: larger ones are not timed, there may be no room. */
static const double max_bytes = 256 << 20;

typedef struct {
    slices *of;
    step s;
    candidate c;
    double best;
} way;

/* Is there time, and will the plan run often enough to make it worth it? */
static int may_time(const tuner *t, const adj_group *g)
{
    const double run = nominal_seconds(&t->roofline, g), cost = RUNS * run + planning;
    return budget_is_open(t) && t->spent + cost < part_of_time * t->seconds &&
           (t->runs == HUGE_VAL || cost < t->runs * run) &&
           bytes_of_values(g->n_in, g->in) + bytes_of_values(g->n_out, g->out) <= max_bytes;
}

/* A step that computes the group so. */
static adj_status describe_way(adj_exec *e, const sliced_nodes *nodes, way *w)
{
    const node_group g = {.n = nodes->n, .node = nodes->node, .backend = NONE};
    w->s = (step){.kind = STEP_KERNEL};
    if (describe_step(e, &g, &w->s) != ADJ_OK)
        return e->status;
    w->s.call.in = exec_alloc(e, (size_t)w->s.group.n_in, sizeof(void *));
    w->s.call.out = exec_alloc(e, (size_t)w->s.group.n_out, sizeof(void *));
    w->s.call.message = exec_alloc(e, ADJ_WHY, 1);
    if (e->status != ADJ_OK)
        return e->status;
    (void)take_slices(e, w->of, &w->s, 0);
    w->c = (candidate){.backend = e->backend[w->s.backend],
                       .opened = e,
                       .index = w->s.backend,
                       .kernel = w->s.kernel,
                       .group = &w->s.group,
                       .prep = &w->s.prep};
    return make_areas(e, &w->s, &w->c);
}

/* In turns, for so many seconds about; each at least once. */
static adj_status run_both(adj_exec *e, const sliced_nodes *nodes, double seconds, way w[WAYS])
{
    const double deadline = seconds_now() + seconds;
    for (int k = 0; k < WAYS; k++)
        if (describe_way(e, nodes, &w[k]) != ADJ_OK)
            return e->status;
    for (int k = 0; k < WAYS; k++)
        bind_step(e, &w[k].s, &w[k].c);
    for (int round = 0; round < ROUNDS && (round == 0 || seconds_now() < deadline); round++)
        for (int k = 0; k < WAYS; k++) {
            const double took = tune_run_again(e, &w[k].s);
            w[k].best = took < w[k].best ? took : w[k].best;
        }
    return ADJ_OK;
}

/* The winner, recorded under the key. */
static adj_status time_both(adj_exec *e, const adj_exec_opts *o, const sliced_nodes *nodes,
                            const char *key)
{
    tuner *t = e->tuner;
    sliced_nodes whole = *nodes;
    whole.images = whole.batch;
    const double start = seconds_now();
    way w[WAYS] = {{.of = plan_slices(e, o, nodes), .best = HUGE_VAL},
                   {.of = plan_slices(e, o, &whole), .best = HUGE_VAL}};
    if (w[0].of != NULL && w[1].of != NULL)
        run_both(e, nodes, part_of_time * t->seconds - t->spent, w);
    const int sliced = w[0].best < (nodes->pays ? somewhat : clearly) * w[1].best;
    const double best = w[sliced ? 0 : 1].best;
    const tune_entry entry = {.key = key,
                              .backend = slices_backend.name,
                              .kernel = sliced ? "slices" : "whole",
                              .impl = sliced ? w[0].s.prep.impl : "-",
                              .seconds = isfinite(best) ? best : 0};
    if (e->status == ADJ_OK && tune_add(t, &entry) != ADJ_OK)
        no_memory(e);
    for (int k = 0; k < WAYS; k++)
        drop_slices(w[k].of);
    t->changed = 1;
    t->spent += seconds_now() - start;
    return e->status;
}

int tune_slices(adj_exec *e, const adj_exec_opts *o, sliced_nodes *nodes)
{
    tuner *t = e->tuner;
    char key[TUNE_KEY];
    step s = {.kind = STEP_KERNEL};
    const node_group g = {.n = nodes->n, .node = nodes->node, .backend = NONE};
    if (describe_step(e, &g, &s) != ADJ_OK)
        return NONE;
    if (tune_key(e, "slices? ", &s.group, key) != ADJ_OK) {
        no_memory(e);
        return NONE;
    }
    tune_entry *x = tune_find(t, key);
    if (x == NULL && may_time(t, &s.group) && time_both(e, o, nodes, key) == ADJ_OK)
        x = tune_find(t, key);
    if (x == NULL || x->kernel == NULL || strcmp(x->backend, slices_backend.name) != 0)
        return NONE;
    x->used = 1;
    e->info.cached += x->origin != TIMED;
    nodes->tuned = x->seconds;
    return strcmp(x->kernel, "slices") == 0;
}
