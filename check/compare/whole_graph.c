/* whole_graph.c - the whole graph under one configuration, run twice: with every node fetched, and
 * with the roots alone as in a user's run (time, fusion, shared memory). Both must agree. */
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

static void fail_whole(comparing *r, int k, const char *sentence)
{
    compare_result *out = &r->c->result[k];
    if (out->verdict != ADJ_VERDICT_PASS)
        return;
    out->verdict = ADJ_VERDICT_FAIL;
    out->reason = sentence;
}

/* Limit: units of the type, and a multiple of the worst distance of any root from the reference,
 * since rounding propagates differently in every graph. */
static const double times = 4, units = 64;

/* Sets the distances of root i from the fetch-all run and of that run from the reference. Returns 0
 * if either is unavailable or not repeatable. */
static int compare_root(const comparing *r, int k, const outcome *o, int i, double *apart,
                        double *reference_apart)
{
    const outcome *all = &r->whole[k], *reference = &r->whole[0];
    const adj_node *n = r->root[i];
    const int at = r->index[n->id];
    const adj_dtype dtype = config_dtype(&r->c->config[k], n->type.dtype);
    const adj_type type = {dtype, n->type.shape};
    if (at < 0 || all->status != ADJ_OK || !all->info[at].repeats)
        return 0;
    *apart = norm_apart(type, o->value[i], dtype, all->value[at]);
    *reference_apart = norm_apart(
        type, all->value[at], config_dtype(&r->c->config[0], n->type.dtype), reference->value[at]);
    return isfinite(*reference_apart);
}

/* Gives the verdict on roots of which some differ in bits. */
static void set_distances(comparing *r, int k, const outcome *o)
{
    const adj_compare_config *config = &r->c->config[k];
    compare_result *out = &r->c->result[k];
    double max = 0, apart, reference_apart;
    for (int i = 0; i < r->n_root; i++) {
        if (!compare_root(r, k, o, i, &apart, &reference_apart))
            continue;
        max = fmax(max, reference_apart);
        if (apart > out->apart) {
            out->apart = apart;
            out->reference_apart = reference_apart;
        }
    }
    for (int i = 0; i < r->n_root; i++) {
        const adj_node *n = r->root[i];
        const double unit = fmax(adj_traits_of(config_dtype(config, n->type.dtype))->unit,
                                 adj_traits_of(config_half(config))->unit);
        if (compare_root(r, k, o, i, &apart, &reference_apart) && apart > units * unit &&
            apart > times * max)
            fail_whole(r, k,
                       log_text(&r->c->log,
                                "%%%u %s is %.2g of its norm away from where it is when every "
                                "node is kept; the worst result is %.2g from the reference",
                                n->id, n->op->name, apart, max));
    }
}

static void check_roots(comparing *r, int k, const outcome *o)
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
        set_distances(r, k, o);
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
            check_roots(r, k, &o);
    }
    if (status == ADJ_OK && o.status == ADJ_OK && r->whole[0].status == ADJ_OK)
        status = compare_groups(r, k, t, image, &o);
    adj_graph_free(o.plan);
    region_free(&p);
    return status;
}

/* ---- the whole graph ---- */

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
