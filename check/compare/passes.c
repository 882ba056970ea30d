/* passes.c - checks that every pass preserves the results of the graph. The graph before and after
 * each pass is run in f64 on naive, each node as a step. Rewrites that only round differently in
 * the trial's types agree in f64. */
#include <math.h>
#include <string.h>

#include "base/c_locale.h"
#include "compare.h"

/* Tolerance relative to a result's norm; reordered f64 sums differ by much less. */
static const double tolerance = 1e-9;

/* ---- a graph in f64 ---- */

/* Returns the index of the trial's leaf that x stands for; negative: none. */
static int leaf_of(const trial *t, const adj_node *const image[], const adj_node *x)
{
    for (int i = 0; i < t->n_leaf; i++)
        if (image[t->leaf[i]->id] == x)
            return i;
    return -1;
}

/* Builds g's nodes over t's leaves; to: by id of g. */
static adj_status build_in_f64(const trial *t, const adj_graph *g, const adj_node *const image[],
                               region *p, trial *out, adj_node *to[])
{
    for (int id = 0; id < g->n_node; id++) {
        const adj_node *x = g->node[id];
        const int leaf = leaf_of(t, image, x);
        const adj_type type = {config_dtype(out->config, x->type.dtype), x->type.shape};
        void *v = NULL;
        if (leaf >= 0 && (v = convert(p, t->leaf[leaf]->type.dtype, t->data[leaf], type.dtype,
                                      node_elems(x))) == NULL)
            return ADJ_ENOMEM;
        to[id] = v != NULL ? trial_leaf(out, type, v) : trial_node(out, out->config, x, to);
        if (adj_graph_status(out->g) != ADJ_OK)
            return adj_graph_status(out->g);
    }
    return ADJ_OK;
}

adj_status run_in_f64(const trial *t, const adj_graph *g, const adj_node *const image[],
                      int n_fetch, const adj_node *const fetch[], region *p, outcome *o)
{
    const adj_trial_opts trials = {.internal = t->internal};
    const adj_compare_opts opts = {.exec.threads = t->threads, .exec.backends = t->backends};
    const runner b = {.opts = &opts, .trials = &trials, .reference = &naive_f64};
    trial f64;
    adj_status status = trial_open(&b, &naive_f64, t->n_leaf, n_fetch, p, &f64);
    adj_node **to = region_alloc(p, (size_t)g->n_node, sizeof(adj_node *));
    *o = (outcome){0};
    if (to == NULL)
        status = ADJ_ENOMEM;
    if (status == ADJ_OK && (status = build_in_f64(t, g, image, p, &f64, to)) != ADJ_OK)
        outcome_message(o, adj_graph_message(f64.g));
    for (int i = 0; i < n_fetch && status == ADJ_OK; i++)
        f64.fetch[f64.n_fetch++] = to[fetch[i]->id];
    f64.as_built = 1;
    if (status == ADJ_OK && (status = trial_here(&f64, p, o)) == ADJ_OK)
        status = o->status;
    adj_graph_free(f64.g);
    return status;
}

/* ---- before and after ---- */

/* Compares the results with those before the pass. */
static void check_pass(watch *w, const char *pass, void *const value[])
{
    for (int i = 0; i < w->trial->n_fetch && w->sentence[0] == '\0'; i++) {
        const adj_node *n = w->trial->fetch[i];
        if (!adj_is_float(n->type.dtype))
            continue;
        const adj_type type = {ADJ_F64, n->type.shape};
        const double apart = norm_apart(type, value[i], ADJ_F64, w->before.value[i]);
        if (apart > tolerance)
            c_snprintf(w->sentence, sizeof w->sentence,
                       "pass %s changes %%%u %s by %.2g of its norm", pass, n->id, n->op->name,
                       apart);
    }
}

void watch_graph(void *user, const char *pass, const adj_graph *g, adj_node *const image[])
{
    watch *w = user;
    const trial *t = w->trial;
    region p = {.allocator = g->region.allocator};
    outcome o = {0};
    const adj_node **fetch = region_alloc(&p, (size_t)t->n_fetch, sizeof(adj_node *));
    for (int i = 0; i < t->n_fetch && fetch != NULL; i++)
        fetch[i] = image[t->fetch[i]->id];
    if (w->status == ADJ_OK)
        w->status = fetch != NULL ? run_in_f64(t, g, (const adj_node *const *)image, t->n_fetch,
                                               fetch, &p, &o)
                                  : ADJ_ENOMEM;
    if (w->status == ADJ_OK && w->is_begun)
        check_pass(w, pass, o.value);
    if (w->status != ADJ_OK && w->status != ADJ_ENOMEM && w->is_begun && w->sentence[0] == '\0')
        snprintf(w->sentence, sizeof w->sentence,
                 "the graph after pass %s cannot be run in f64: %.100s", pass, o.message);
    region_free(&w->region);
    w->region = p;
    w->before = o;
    w->is_begun = 1;
}
