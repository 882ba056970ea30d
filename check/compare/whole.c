/* whole.c - the whole graph under one configuration: once with every node fetched, and once
 * with the roots alone, as a user would run it (time, fusion, memory shared). The second has to
 * give what the first does. */
#include <math.h>
#include <string.h>

#include "compare.h"

static adj_status list_leaves(comparing *r, adj_node *const image[], trial *t)
{
    for (int id = 0; id < r->g->n_node; id++) {
        const adj_node *n = r->g->node[id];
        if (!r->needed[id] || r->leaf_value[id] == NULL || !(n->op->flags & ADJ_OP_LEAF) ||
            n->op == &adj_op_const)
            continue;
        int64_t elems = adj_shape_elems(n->type.shape);
        adj_dtype to = image[id]->type.dtype;
        t->leaf[t->n_leaf] = image[id];
        t->data[t->n_leaf] =
            convert(&r->c->log.region, n->type.dtype, r->leaf_value[id], to, elems);
        if (t->data[t->n_leaf++] == NULL)
            return log_no_memory(&r->c->log);
    }
    return ADJ_OK;
}

/* ---- roots alone: what a user would run ---- */

/* Sums of squares over all elements: from the run that keeps every node, of that from the
 * reference, and of the reference. */
typedef struct {
    double apart, reference_apart, signal;
    int broken; /* not finite where the other run is */
} distance;

static distance distance_of(const comparing *r, int k, const adj_node *n, const void *value)
{
    adj_dtype dtype = config_dtype(&r->c->config[k], n->type.dtype);
    adj_dtype reference = config_dtype(&r->c->config[0], n->type.dtype);
    int i = r->index[n->id];
    distance d = {0};
    for (int64_t e = 0, n_elems = adj_shape_elems(n->type.shape); e < n_elems; e++) {
        double v = adj_load(dtype, value, e), all = adj_load(dtype, r->whole[k].value[i], e);
        double w = adj_load(reference, r->whole[0].value[i], e);
        d.broken |= isfinite(all) && !isfinite(v);
        if (!isfinite(all) || !isfinite(v) || !isfinite(w))
            continue;
        d.apart += (v - all) * (v - all);
        d.reference_apart += (all - w) * (all - w);
        d.signal += w * w;
    }
    return d;
}

static void fail_whole(comparing *r, int k, const char *sentence)
{
    compare_result *out = &r->c->result[k];
    if (out->verdict != ADJ_VERDICT_PASS)
        return;
    out->verdict = ADJ_VERDICT_FAIL;
    out->reason = sentence;
}

/* Sums in other orders, and fused kernels that round less often, are no further from the run that
 * keeps every node than that one is from the reference, up to a factor: how far roundings carry is
 * the graph's. One number may be right by chance, so the worst of all results counts. */
static const double times = 4, units = 64;

/* In units of its norm. */
static double relative(double squares, double signal)
{
    return squares == 0 ? 0 : signal > 0 ? sqrt(squares / signal) : INFINITY;
}

static double unit_of(const adj_compare_config *config, adj_dtype dtype)
{
    const double unit = adj_traits_of(dtype)->unit;
    return fmax(unit, adj_traits_of(config_half(config))->unit);
}

static void judge_root(comparing *r, int k, const adj_node *n, distance d, double max)
{
    const adj_compare_config *config = &r->c->config[k];
    const double apart = d.broken ? INFINITY : relative(d.apart, d.signal);
    if (!(apart > units * unit_of(config, config_dtype(config, n->type.dtype)) &&
          apart > times * max))
        return;
    fail_whole(r, k,
               log_text(&r->c->log,
                        "%%%u %s is %.2g of its norm away from where it is when every node is "
                        "kept; the worst result is %.2g from the reference",
                        n->id, n->op->name, apart, max));
}

/* Sets *d for root i and returns 1 if two runs of every node gave the same value for it; else 0. */
static int compare_root(const comparing *r, int k, const outcome *o, int i, distance *d)
{
    const outcome *all = &r->whole[k];
    const adj_node *n = r->root[i];
    if (r->index[n->id] < 0 || all->status != ADJ_OK || !all->info[r->index[n->id]].repeats)
        return 0;
    *d = distance_of(r, k, n, o->value[i]);
    return 1;
}

/* Gives the verdict on roots of which some differ in bits. */
static void judge_distances(comparing *r, int k, const outcome *o)
{
    compare_result *out = &r->c->result[k];
    double max = 0;
    distance d;
    for (int i = 0; i < r->n_root; i++)
        if (compare_root(r, k, o, i, &d)) {
            max = fmax(max, relative(d.reference_apart, d.signal));
            if (relative(d.apart, d.signal) > out->apart) {
                out->apart = relative(d.apart, d.signal);
                out->reference_apart = relative(d.reference_apart, d.signal);
            }
        }
    for (int i = 0; i < r->n_root; i++)
        if (compare_root(r, k, o, i, &d))
            judge_root(r, k, r->root[i], d, max);
}

static void judge_roots(comparing *r, int k, const outcome *o)
{
    compare_result *out = &r->c->result[k];
    const outcome *all = &r->whole[k];
    if (o->plan_fault[0] != '\0')
        fail_whole(r, k, log_text(&r->c->log, "%s", o->plan_fault));
    for (int i = 0; i < r->n_root; i++) {
        const adj_node *n = r->root[i];
        const adj_type type = {config_dtype(&r->c->config[k], n->type.dtype), n->type.shape};
        out->repeats &= o->info[i].repeats;
        out->differs += r->index[n->id] >= 0 && all->status == ADJ_OK &&
                        memcmp(o->value[i], all->value[r->index[n->id]], adj_type_bytes(type)) != 0;
    }
    if (out->differs > 0)
        judge_distances(r, k, o);
    if (!out->repeats)
        fail_whole(r, k, "not repeatable: two runs of the whole graph gave different bits");
    if (out->differs > 0 && o->kernels == all->kernels)
        fail_whole(r, k,
                   log_text(&r->c->log,
                            "%d results differ in bits from those of the run that keeps every "
                            "node, though the same kernels ran on the same layouts",
                            out->differs));
}

static void describe_run(const outcome *o, compare_result *out)
{
    out->ms = 1e3 * o->seconds;
    out->repeats = 1;
    out->steps = o->exec.steps;
    out->reorders = o->reorders;
    out->naive_steps = o->exec.naive_steps;
    out->arena_bytes = o->exec.arena_bytes;
}

/* Lists the updates over the trial's nodes: those of leaves that are read. */
static const adj_updates *list_updates(const comparing *r, adj_node *const image[], const trial *t)
{
    const adj_updates *all = r->opts->exec.updates;
    adj_updates *u = adj_updates_count(all) > 0 ? adj_updates_new(t->g) : NULL;
    for (int i = 0; i < adj_updates_count(all) && u != NULL; i++) {
        adj_node *leaf = image[adj_updates_leaf_at(all, i)->id];
        if (leaf != NULL)
            adj_updates_add(u, leaf, image[adj_updates_next_at(all, i)->id]);
    }
    return adj_updates_count(u) > 0 ? u : NULL;
}

static adj_status run_roots(comparing *r, trial *t, adj_node *const image[], int k)
{
    compare_result *out = &r->c->result[k];
    outcome o = {0};
    region p = {.allocator = r->c->log.region.allocator};
    t->bare = 1;
    t->updates = list_updates(r, image, t);
    t->n_fetch = r->n_root;
    for (int i = 0; i < r->n_root; i++)
        t->fetch[i] = image[r->root[i]->id];
    adj_status status = run_trial(&r->runner, t, &p, &o);
    if (status == ADJ_OK) {
        describe_run(&o, out);
        if (o.status != ADJ_OK)
            report_failure(r->c, &o, &out->verdict, &out->reason);
        else
            judge_roots(r, k, &o);
    }
    if (status == ADJ_OK && o.status == ADJ_OK && r->whole[0].status == ADJ_OK)
        status = compare_groups(r, k, t, image, &o);
    adj_graph_free(o.plan);
    region_free(&p);
    return status;
}

/* ---- all of it ---- */

adj_status compare_whole(comparing *r, int k)
{
    comparison *c = r->c;
    const adj_compare_config *config = &c->config[k];
    trial t;
    adj_status status =
        trial_open(&r->runner, config, r->g->n_node, r->n_node + r->n_root, &c->log.region, &t);
    adj_node **image = region_alloc(&c->log.region, (size_t)r->g->n_node, sizeof *image);
    if (image == NULL)
        status = ADJ_ENOMEM;
    for (int id = 0; id < r->g->n_node && status == ADJ_OK && t.g->status == ADJ_OK; id++)
        if (r->needed[id])
            image[id] =
                adj_label(trial_node(&t, config, r->g->node[id], image), r->g->node[id]->name);
    if (status == ADJ_OK && t.g->status != ADJ_OK)
        status = log_fail(&c->log, adj_graph_status(t.g), "adj_compare: %s: %s", config->name,
                          adj_graph_message(t.g));
    if (status == ADJ_OK)
        status = list_leaves(r, image, &t);
    for (int id = 0; id < r->g->n_node && status == ADJ_OK; id++)
        if (r->index[id] >= 0)
            t.fetch[t.n_fetch++] = image[id];
    if (r->trials->alone)
        t.runs = 0;
    if (status == ADJ_OK)
        status = run_trial(&r->runner, &t, &c->log.region, &r->whole[k]);
    if (status == ADJ_OK && r->whole[k].status != ADJ_OK)
        report_failure(c, &r->whole[k], &c->result[k].verdict, &c->result[k].reason);
    c->result[k].canary = status == ADJ_OK && r->whole[k].canary;
    if (status == ADJ_OK && k == 0) /* nothing is made of what a plain run of it would give */
        describe_run(&r->whole[0], &c->result[0]);
    else if (status == ADJ_OK && !r->trials->alone)
        status = run_roots(r, &t, image, k);
    adj_graph_free(t.g);
    return status == ADJ_ENOMEM ? log_no_memory(&c->log) : status;
}
