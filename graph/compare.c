/* compare.c - adj_compare: one graph under several configurations, node by node.
 *
 * Each configuration runs the whole graph with every node fetched (propagated values, in_plan), the
 * whole graph with only the roots fetched (what a user would run: time, fusion), and every node
 * alone on the reference's operands (isolated). compare_node.c has the bounds, compare_judge.c the
 * measures. */
#include <math.h>
#include <string.h>

#include "compare.h"
#include "compare_report.h"

adj_status compare_fail(adj_comparison *c, adj_status status, const char *format, ...)
{
    va_list args;
    if (c->status != ADJ_OK)
        return c->status;
    va_start(args, format);
    write_message(c->message, format, args);
    va_end(args);
    return c->status = status;
}

static adj_status no_memory(adj_comparison *c)
{
    return compare_fail(c, ADJ_ENOMEM, "adj_compare: out of memory");
}

static void *room(adj_comparison *c, size_t count, size_t size)
{
    void *p = pool_alloc(&c->pool, count, size);
    if (p == NULL)
        no_memory(c);
    return p;
}

static void say(comparing *r, const char *what)
{
    if (r->opts->progress != NULL)
        r->opts->progress(r->opts->user, r->done, r->of, what);
    r->done++;
}

/* ---- the whole graph under one configuration ---- */

/* Rebuilds what is needed; image by id. */
static adj_status rebuild(comparing *r, const adj_config *config, adj_graph *to, adj_node *image[])
{
    adj_node *in[MOST_IN];
    for (int id = 0; id < r->g->n_node && to->status == ADJ_OK; id++) {
        const adj_node *n = r->g->node[id];
        if (!r->needed[id])
            continue;
        for (int k = 0; k < n->n_in; k++)
            in[k] = image[n->in[k]->id];
        to->role = n->role;
        image[id] = adj_label(config_rule(config, to, n, in), n->name);
    }
    return to->status;
}

static adj_status list_leaves(comparing *r, adj_node *const image[], trial *t)
{
    pool *p = &r->c->pool;
    t->leaf = pool_alloc(p, (size_t)r->g->n_node, sizeof(adj_node *));
    t->data = pool_alloc(p, (size_t)r->g->n_node, sizeof(void *));
    if (t->leaf == NULL || t->data == NULL)
        return no_memory(r->c);
    for (int id = 0; id < r->g->n_node; id++) {
        const adj_node *n = r->g->node[id];
        if (!r->needed[id] || r->leaf_value[id] == NULL || !(n->op->flags & ADJ_OP_LEAF) ||
            n->op == &adj_op_const)
            continue;
        int64_t elems = adj_shape_elems(n->type.shape);
        adj_dtype to = image[id]->type.dtype;
        void *v = room(r->c, (size_t)elems + 1, adj_dtype_size(to));
        for (int64_t i = 0; v != NULL && i < elems; i++)
            adj_store(to, v, i, adj_load(n->type.dtype, r->leaf_value[id], i));
        t->leaf[t->n_leaf] = image[id];
        t->data[t->n_leaf++] = v;
    }
    return r->c->status;
}

/* Roots alone: what a user would run. Their bits should be those of the run that keeps all. */
static adj_status run_roots(comparing *r, const bench *b, trial *t, adj_node *const image[],
                            const outcome *all, adj_config_result *out)
{
    outcome o;
    pool p = {.allocator = r->c->pool.allocator};
    t->bare = 1;
    t->n_fetch = r->n_root;
    for (int i = 0; i < r->n_root; i++)
        t->fetch[i] = image[r->root[i]->id];
    adj_status status = run_trial(b, t, &p, &o);
    out->ms = 1e3 * o.seconds;
    out->repeats = 1;
    for (int i = 0; status == ADJ_OK && o.status == ADJ_OK && i < r->n_root; i++) {
        const adj_node *n = image[r->root[i]->id];
        int k = r->index[r->root[i]->id];
        out->repeats &= o.info[i].repeats;
        if (k >= 0 && all->status == ADJ_OK)
            out->differs +=
                memcmp(o.value[i], all->value[k],
                       (size_t)adj_shape_elems(n->type.shape) * adj_dtype_size(n->type.dtype)) != 0;
    }
    if (status == ADJ_OK) {
        out->steps = o.exec.steps;
        out->reorders = o.exec.reorders;
        out->naive_steps = o.exec.naive_steps;
        out->arena_bytes = o.exec.arena_bytes;
        if (o.status != ADJ_OK)
            report_failure(r->c, &o, &out->verdict, &out->reason);
    }
    pool_free(&p);
    return status;
}

static adj_status run_config(comparing *r, int k)
{
    adj_comparison *c = r->c;
    const adj_config *config = &c->config[k];
    adj_graph_opts opts = {.allocator = &c->pool.allocator};
    const bench b = {r->opts, &c->config[0], r->opts->runs > 0 ? r->opts->runs : 5};
    trial t = {.config = config,
               .backends = k > 0 ? r->opts->backends : NULL,
               .quarantine = r->opts->quarantine,
               .g = adj_graph_new_with(ADJ_VERSION, &opts),
               .fetch = room(c, (size_t)(r->n_node + r->n_root), sizeof(adj_node *)),
               .runs = b.runs,
               .threads = r->opts->threads};
    adj_node **image = room(c, (size_t)r->g->n_node, sizeof(adj_node *));
    adj_status status = t.g == NULL ? no_memory(c) : c->status;
    if (status == ADJ_OK && rebuild(r, config, t.g, image) != ADJ_OK)
        status = compare_fail(c, adj_graph_status(t.g), "adj_compare: %s: %s", config->name,
                              adj_graph_message(t.g));
    if (status == ADJ_OK)
        status = list_leaves(r, image, &t);
    for (int id = 0; id < r->g->n_node && status == ADJ_OK; id++)
        if (r->index[id] >= 0)
            t.fetch[t.n_fetch++] = image[id];
    if (status == ADJ_OK)
        status = run_trial(&b, &t, &c->pool, &r->whole[k]);
    if (status == ADJ_OK && r->whole[k].status != ADJ_OK)
        report_failure(c, &r->whole[k], &c->result[k].verdict, &c->result[k].reason);
    if (status == ADJ_OK)
        status = run_roots(r, &b, &t, image, &r->whole[k], &c->result[k]);
    adj_graph_free(t.g);
    return status == ADJ_ENOMEM ? no_memory(c) : status;
}

/* ---- one node under one configuration ---- */

/* The value of a node under configuration k. */
static const void *value_of(const comparing *r, int k, const adj_node *n, adj_dtype *dtype)
{
    if (r->index[n->id] >= 0) {
        *dtype = config_dtype(&r->c->config[k], n->type.dtype);
        return r->whole[k].value[r->index[n->id]];
    }
    *dtype = n->type.dtype;
    return r->leaf_value[n->id];
}

static node_case case_of(const comparing *r, int k, const adj_node *n, const void *operand[],
                         adj_dtype dtype[])
{
    for (int i = 0; i < n->n_in; i++)
        operand[i] = value_of(r, k, n->in[i], &dtype[i]);
    return (node_case){.node = n, .operand = operand, .dtype = dtype};
}

static void judge_against(const adj_config *config, const adj_node *n, const void *value,
                          const expectation *e, adj_error *out)
{
    judged j = {{config_dtype(config, n->type.dtype), n->type.shape},
                value,
                e->dtype,
                e->expected,
                e->bound,
                e->exact};
    *out = judge(&j);
}

static void describe_row(const outcome *o, double reference_seconds, adj_compare_row *row)
{
    const fetch_info *f = &o->info[0];
    row->repeats = f->repeats;
    row->us = 1e6 * f->seconds;
    row->reference_us = 1e6 * reference_seconds;
    row->gflops = f->seconds > 0 ? 1e-9 * f->flop / f->seconds : 0;
    row->bytes = (size_t)f->bytes;
    row->reorders = o->exec.reorders;
    snprintf(row->backend, sizeof row->backend, "%s", f->backend);
    snprintf(row->implementation, sizeof row->implementation, "%s", f->implementation);
}

static adj_status isolated(comparing *r, const bench *b, int k, pool *p, adj_compare_row *row)
{
    const adj_config *config = &r->c->config[k];
    const void *operand[MOST_IN];
    adj_dtype dtype[MOST_IN];
    node_case n = case_of(r, 0, row->node, operand, dtype);
    expectation e;
    outcome o;
    n.exact = r->opts->exact;
    adj_status status = node_expect(b, &n, config, p, &e, &o);
    if (status == ADJ_OK && o.status == ADJ_OK)
        status = node_run(b, &n, config, p, &o);
    if (status != ADJ_OK)
        return status;
    if (o.status != ADJ_OK) {
        report_failure(r->c, &o, &row->verdict, &row->reason);
        row->blame = ADJ_BLAME_KERNEL;
        row->canary = o.canary;
        return ADJ_OK;
    }
    row->exact = e.exact;
    memcpy(row->origin, e.origin, sizeof row->origin);
    judge_against(config, row->node, o.value[0], &e, &row->isolated);
    describe_row(&o, r->whole[0].info[r->index[row->node->id]].seconds, row);
    row->why = report_text(r->c, o.info[0].why);
    return ADJ_OK;
}

static adj_status within_the_graph(comparing *r, const bench *b, int k, pool *p,
                                   adj_compare_row *row)
{
    const adj_config *config = &r->c->config[k];
    const adj_node *node = row->node;
    const void *operand[MOST_IN];
    adj_dtype dtype[MOST_IN];
    node_case n = case_of(r, k, node, operand, dtype);
    const void *value = r->whole[k].value[r->index[node->id]];
    expectation e;
    outcome o;
    adj_status status = node_expect(b, &n, config, p, &e, &o);
    if (status == ADJ_OK && o.status == ADJ_OK)
        judge_against(config, node, value, &e, &row->in_plan);
    e = (expectation){.dtype = config_dtype(&r->c->config[0], node->type.dtype),
                      .expected = r->whole[0].value[r->index[node->id]]};
    judge_against(config, node, value, &e, &row->propagated);
    row->repeats &= r->whole[k].info[r->index[node->id]].repeats;
    return status;
}

static void blame(const comparing *r, int k, adj_compare_row *row)
{
    const adj_node *n = row->node;
    if (row->verdict == ADJ_VERDICT_PASS && row->isolated.wrong > 0)
        row->blame = ADJ_BLAME_KERNEL;
    else if (row->verdict == ADJ_VERDICT_PASS && row->in_plan.wrong > 0)
        row->blame = ADJ_BLAME_PLAN;
    if (row->blame != ADJ_BLAME_NONE && row->verdict == ADJ_VERDICT_PASS)
        row->verdict = ADJ_VERDICT_FAIL;
    for (int i = 0; i < n->n_in && row->blame == ADJ_BLAME_NONE; i++)
        if (r->tainted[(size_t)n->in[i]->id * (size_t)r->c->n_config + (size_t)k])
            row->blame = ADJ_BLAME_UPSTREAM;
    r->tainted[(size_t)n->id * (size_t)r->c->n_config + (size_t)k] = row->blame != ADJ_BLAME_NONE;
    r->c->n_failed += row->verdict != ADJ_VERDICT_PASS;
}

static adj_status compare_node(comparing *r, const adj_node *n, int k)
{
    const bench b = {r->opts, &r->c->config[0], r->opts->runs > 0 ? r->opts->runs : 5};
    pool p = {.allocator = r->c->pool.allocator};
    adj_compare_row *row = &r->c->row[r->c->n_row];
    *row = (adj_compare_row){.node = n, .config = k, .reason = "", .why = "", .repeats = 1};
    row->isolated.worst = row->in_plan.worst = row->propagated.worst = NAN;
    adj_status status = isolated(r, &b, k, &p, row);
    if (status == ADJ_OK && r->whole[k].status == ADJ_OK)
        status = within_the_graph(r, &b, k, &p, row);
    pool_free(&p);
    if (status != ADJ_OK)
        return no_memory(r->c);
    blame(r, k, row);
    r->c->n_row++;
    return r->c->status;
}

adj_status compare_all(comparing *r)
{
    adj_comparison *c = r->c;
    r->of = c->n_config + r->n_node * (c->n_config - 1);
    for (int k = 0; k < c->n_config && c->status == ADJ_OK; k++) {
        say(r, c->config[k].name);
        run_config(r, k);
        if (k == 0 && c->status == ADJ_OK && r->whole[0].status != ADJ_OK)
            compare_fail(c, r->whole[0].status, "adj_compare: the reference %s failed: %s",
                         c->config[0].name, r->whole[0].message);
    }
    for (int id = 0; id < r->g->n_node && c->status == ADJ_OK; id++)
        for (int k = 1; r->index[id] >= 0 && k < c->n_config && c->status == ADJ_OK; k++) {
            say(r, adj_node_op(r->g->node[id]));
            compare_node(r, r->g->node[id], k);
        }
    return c->status;
}
