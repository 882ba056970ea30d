/* compare.c - entry points of adj_compare: checks options, draws leaf values, fills in and prints
 * the report. */
#include <math.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/printable.h"
#include "compare.h"

void report_failure(comparison *c, const outcome *o, adj_verdict *verdict, const char **reason)
{
    *verdict = o->crashed                   ? ADJ_VERDICT_CRASH
               : o->canary || o->wrong_plan ? ADJ_VERDICT_FAIL
                                            : ADJ_VERDICT_ERROR;
    *reason = log_text(&c->log, "%s", o->message);
}

void report_row_failure(comparison *c, const outcome *o, compare_row *row)
{
    report_failure(c, o, &row->verdict, &row->reason);
    row->blame = o->wrong_plan ? ADJ_BLAME_PLAN : ADJ_BLAME_KERNEL;
    row->canary = o->canary;
}

compare_row report_row(const adj_node *n, const char *group, int config, adj_type type)
{
    const adj_compare_error none = {.worst = NAN};
    return (compare_row){.node = n,
                         .group = group,
                         .config = config,
                         .type = type,
                         .reason = "",
                         .isolated = none,
                         .in_plan = none,
                         .propagated = none,
                         .why = "",
                         .repeats = 1};
}

/* ---- options ---- */

static adj_status check_graph_of(comparison *c, const adj_graph *g, const adj_compare_opts *o)
{
    if (g == NULL || o == NULL)
        return log_fail(&c->log, ADJ_EARG, "adj_compare: %s is NULL",
                        g == NULL ? "graph" : "options");
    if (g->status != ADJ_OK)
        return log_fail(&c->log, g->status, "%s", g->message);
    if (o->exec.n_fetch < 0 || (o->exec.n_fetch > 0 && o->exec.fetch == NULL))
        return log_fail(&c->log, ADJ_EARG, "adj_compare: exec.fetch is wrong (got n_fetch %d)",
                        o->exec.n_fetch);
    for (int i = 0; i < o->exec.n_fetch; i++)
        if (o->exec.fetch[i] == NULL || o->exec.fetch[i]->graph != g)
            return log_fail(&c->log, ADJ_EARG, "adj_compare: exec.fetch[%d] is %s", i,
                            o->exec.fetch[i] == NULL ? "NULL" : "of another graph");
    if (o->exec.updates != NULL && o->exec.updates->graph != g)
        return log_fail(&c->log, ADJ_EARG, "adj_compare: updates are of another graph");
    if (o->exec.n_fetch + adj_updates_count(o->exec.updates) == 0)
        return log_fail(&c->log, ADJ_EARG,
                        "adj_compare: nothing to compare (no exec.fetch, no exec.updates)");
    for (int id = 0; id < g->n_node; id++)
        if (g->node[id]->n_in > MAX_IN)
            return log_fail(&c->log, ADJ_EARG,
                            "adj_compare: %s \"%s\" has too many operands (got %d, expected at "
                            "most %d)",
                            g->node[id]->op->name, adj_node_name(g->node[id]), g->node[id]->n_in,
                            MAX_IN);
    return ADJ_OK;
}

/* Fails if a value would not be read. */
static adj_status check_values(comparison *c, const adj_graph *g, const adj_compare_opts *o)
{
    if (o->n_value < 0 || (o->n_value > 0 && o->value == NULL))
        return log_fail(&c->log, ADJ_EARG, "adj_compare: value is wrong (got n_value %d)",
                        o->n_value);
    for (int i = 0; i < o->n_value; i++) {
        const adj_node *n = o->value[i].leaf;
        const char *wrong = n == NULL       ? "has no leaf"
                            : n->graph != g ? "is of another graph"
                            : o->value[i].data == NULL && adj_type_bytes(n->type) > 0
                                ? "has no data"
                                : NULL;
        if (wrong != NULL)
            return log_fail(&c->log, ADJ_EARG, "adj_compare: value[%d] %s", i, wrong);
        if (!(n->op->flags & ADJ_OP_LEAF) || n->op == &adj_op_const)
            return log_fail(&c->log, ADJ_EARG,
                            "adj_compare: value[%d] is of %s \"%s\" (expected an input, param or "
                            "state)",
                            i, n->op->name, adj_node_name(n));
    }
    return ADJ_OK;
}

static adj_status check_numbers(comparison *c, const adj_compare_opts *o, const adj_trial_opts *t)
{
    if (o->runs < 0 || o->runs > 1000)
        return log_fail(&c->log, ADJ_EARG,
                        "adj_compare: runs is wrong (got %d, expected 0 to 1000)", o->runs);
    if (o->exec.threads < 0 || o->exec.threads > 1024)
        return log_fail(&c->log, ADJ_EARG,
                        "adj_compare: threads is wrong (got %d, expected 0 to 1024)",
                        o->exec.threads);
    const char *unread = o->exec.backend != NULL ? "backend"
                         : o->exec.debug != NULL ? "debug"
                                                 : unread_option(&o->exec);
    if (unread != NULL)
        return log_fail(
            &c->log, ADJ_EARG,
            "adj_compare: exec.%s is set (expected 0 or NULL: configurations have their own)",
            unread);
    if (t->guard && (t->elsewhere == NULL || o->exec.backends != NULL))
        return log_fail(&c->log, ADJ_EARG, "adj_compare: guard needs elsewhere, and no backends");
    return ADJ_OK;
}

static adj_status read_configs(comparison *c, const adj_compare_opts *o, const adj_trial_opts *t)
{
    static const char *const defaults[] = {"naive:f64", "naive", "onednn"};
    const char *const *text = o->n_config > 0 ? o->config : defaults;
    adj_error error;
    int n = o->n_config > 0 ? o->n_config : 3;
    if (o->n_config < 0 || o->n_config == 1 || o->n_config > MAX_CONFIGS || text == NULL)
        return log_fail(&c->log, ADJ_EARG,
                        "adj_compare: n_config is wrong (got %d, expected 0 or 2 to %d)",
                        o->n_config, MAX_CONFIGS);
    c->config = region_alloc(&c->log.region, (size_t)n, sizeof *c->config);
    c->result = region_alloc(&c->log.region, (size_t)n, sizeof *c->result);
    if (c->config == NULL || c->result == NULL)
        return log_no_memory(&c->log);
    for (int i = 0; i < n; i++) {
        c->result[i].reason = "";
        const adj_backend *const *backends = i > 0 ? o->exec.backends : NULL;
        if (adj_compare_config_parse(text[i], backends, &c->config[i], &error) != ADJ_OK)
            return log_fail(&c->log, error.status, "adj_compare: %s", error.message);
        if (c->config[i].isa[0] != '\0' && i == 0)
            return log_fail(&c->log, ADJ_EARG,
                            "adj_compare: the first configuration is the reference and runs in "
                            "this process, where no isa can be set (got \"%s\")",
                            c->config[i].name);
        if (c->config[i].isa[0] != '\0' && t->elsewhere == NULL)
            return log_fail(&c->log, ADJ_EARG,
                            "adj_compare: configuration \"%s\": an isa needs a process of its "
                            "own, but elsewhere is NULL",
                            c->config[i].name);
    }
    c->n_config = n;
    return ADJ_OK;
}

/* ---- leaves ---- */

/* The value of a leaf or a fill; NULL with the error recorded when out of memory. */
static void *leaf_value(comparing *r, const adj_node *n)
{
    int64_t elems = adj_shape_elems(n->type.shape);
    size_t bytes = adj_type_bytes(n->type);
    const void *given = NULL;
    double value;
    void *v = region_alloc(&r->c->log.region, bytes + 1, 1);
    if (v == NULL) {
        log_no_memory(&r->c->log);
        return NULL;
    }
    for (int i = 0; i < r->opts->n_value; i++)
        if (r->opts->value[i].leaf == n)
            given = r->opts->value[i].data;
    if (n->op == &adj_op_const)
        given = ((const adj_const_attrs *)n->attrs)->data;
    if (adj_is_fill(n, &value))
        for (int64_t i = 0; i < elems; i++)
            adj_store(n->type.dtype, v, i, value);
    else if (given != NULL)
        memcpy(v, given, bytes);
    else if (draw_leaf(n, 0, r->opts->exec.seed, &r->c->log.region, v) != ADJ_OK) {
        log_no_memory(&r->c->log);
        return NULL;
    }
    return v;
}

/* ---- the whole ---- */

static adj_status list_nodes(comparing *r)
{
    const adj_compare_opts *o = r->opts;
    region *p = &r->c->log.region;
    size_t n = (size_t)r->g->n_node;
    int n_update = adj_updates_count(o->exec.updates);
    r->root = region_alloc(p, (size_t)(o->exec.n_fetch + n_update), sizeof(adj_node *));
    r->needed = region_alloc(p, n, 1);
    r->index = region_alloc(p, n, sizeof *r->index);
    r->leaf_value = region_alloc(p, n, sizeof(void *));
    r->tainted = region_alloc(p, n * (size_t)r->c->n_config, 1);
    r->whole = region_alloc(p, (size_t)r->c->n_config, sizeof *r->whole);
    r->group_row = region_alloc(p, (size_t)r->c->n_config, sizeof *r->group_row);
    r->n_group_row = region_alloc(p, (size_t)r->c->n_config, sizeof *r->n_group_row);
    if (r->group_row == NULL || r->n_group_row == NULL || r->root == NULL || r->needed == NULL ||
        r->index == NULL || r->leaf_value == NULL || r->tainted == NULL || r->whole == NULL)
        return log_no_memory(&r->c->log);
    for (int i = 0; i < o->exec.n_fetch; i++)
        r->root[r->n_root++] = o->exec.fetch[i];
    for (int i = 0; i < n_update; i++)
        r->root[r->n_root++] = adj_updates_next_at(o->exec.updates, i);
    mark_needed(r->g, r->n_root, r->root, r->needed);
    for (int id = 0; id < r->g->n_node && r->c->log.status == ADJ_OK; id++) {
        const adj_node *x = r->g->node[id];
        r->index[id] = -1;
        if (r->needed[id] && x->n_in > 0)
            r->index[id] = r->n_node++;
        else if (r->needed[id])
            r->leaf_value[id] = leaf_value(r, x);
    }
    r->c->row = region_alloc(p, (size_t)(r->n_node * r->c->n_config), sizeof *r->c->row);
    return r->c->row == NULL ? log_no_memory(&r->c->log) : r->c->log.status;
}

/* The report of a comparison for which there is no memory. */
static const comparison no_memory = {
    .report = {.message = "adj_compare: out of memory", .n_failed = 1}, .log.status = ADJ_ENOMEM};

/* Returns the larger of the errors alone and within the graph. */
static const adj_compare_error *larger_error(const compare_row *r)
{
    return r->in_plan.worst > r->isolated.worst ? &r->in_plan : &r->isolated;
}

/* Fills in what the caller sees. */
static void fill_report(comparison *c)
{
    adj_compare_row *row = region_alloc(&c->log.region, (size_t)c->n_row, sizeof *row);
    adj_compare_config_result *config =
        region_alloc(&c->log.region, (size_t)c->n_config, sizeof *config);
    if (row == NULL || config == NULL) {
        log_no_memory(&c->log);
        c->n_row = c->n_config = 0;
    }
    c->report = (adj_comparison){.message = c->log.message,
                                 .n_config = c->n_config,
                                 .config = config,
                                 .n_row = c->n_row,
                                 .row = row,
                                 .n_failed = c->log.status != ADJ_OK};
    for (int k = 0; k < c->n_config; k++) {
        const compare_result *r = &c->result[k];
        config[k] = (adj_compare_config_result){c->config[k].name, r->verdict, r->reason, r->ms};
        c->report.n_whole_failed += r->verdict != ADJ_VERDICT_PASS;
    }
    for (int i = 0; i < c->n_row; i++) {
        const compare_row *r = &c->row[i];
        const adj_compare_error *e = larger_error(r);
        c->report.n_failed += r->verdict != ADJ_VERDICT_PASS;
        row[i] = (adj_compare_row){.node = r->node,
                                   .op = adj_compare_row_name(r),
                                   .config = r->config,
                                   .verdict = r->verdict,
                                   .blame = r->blame,
                                   .reason = r->reason,
                                   .at = e->at,
                                   .got = e->got,
                                   .expected = e->expected,
                                   .bound = e->bound,
                                   .worst = e->worst};
    }
}

adj_status adj_compare(adj_graph *g, const adj_compare_opts *opts, const adj_comparison **out)
{
    return adj_compare_with(g, opts, NULL, out);
}

adj_status adj_compare_with(adj_graph *g, const adj_compare_opts *opts,
                            const adj_trial_opts *trials, const adj_comparison **out)
{
    static const adj_trial_opts none = {0};
    const adj_trial_opts *t = trials != NULL ? trials : &none;
    if (out == NULL)
        return ADJ_EARG;
    adj_allocator a = g != NULL ? g->region.allocator : default_allocator();
    comparison *c = adj_alloc(&a, sizeof *c);
    *out = c != NULL ? &c->report : &no_memory.report;
    if (c == NULL)
        return ADJ_ENOMEM;
    c->log = (check_log){.region.allocator = a, .name = "adj_compare"};
    comparing r = {.c = c, .g = g, .opts = opts, .trials = t};
    if (check_graph_of(c, g, opts) == ADJ_OK && check_values(c, g, opts) == ADJ_OK &&
        check_numbers(c, opts, t) == ADJ_OK && read_configs(c, opts, t) == ADJ_OK &&
        list_nodes(&r) == ADJ_OK) {
        const int runs = opts->runs > 0 ? opts->runs : 5;
        r.runner = (runner){.opts = opts,
                            .trials = t,
                            .reference = &c->config[0],
                            .runs = t->alone ? 1 : runs,
                            .scales = !opts->exact};
        compare_all(&r);
    }
    fill_report(c);
    return c->log.status;
}

void adj_comparison_free(const adj_comparison *report)
{
    if (report == NULL || report == &no_memory.report)
        return;
    comparison *c = (comparison *)report;
    adj_allocator a = c->log.region.allocator;
    region_free(&c->log.region);
    adj_release(&a, c);
}

/* ---- reading it ---- */

const adj_compare_config *adj_comparison_config_at(const adj_comparison *c, int i)
{
    return i >= 0 && i < c->n_config ? &((const comparison *)c)->config[i] : NULL;
}

compare_result adj_comparison_result_at(const adj_comparison *c, int i)
{
    return i >= 0 && i < c->n_config ? ((const comparison *)c)->result[i]
                                     : (compare_result){.reason = ""};
}

const compare_row *adj_comparison_row_at(const adj_comparison *c, int i)
{
    return i >= 0 && i < c->n_row ? &((const comparison *)c)->row[i] : NULL;
}

const char *adj_compare_row_name(const compare_row *row)
{
    return row->group[0] != '\0' ? row->group : adj_node_op(row->node);
}

const char *adj_verdict_name(adj_verdict v)
{
    static const char *const names[] = {"pass", "FAIL", "CRASH", "ERROR"};
    return (unsigned)v < sizeof names / sizeof *names ? names[v] : "?";
}

const char *adj_blame_name(adj_blame b)
{
    static const char *const names[] = {"", "kernel", "plan", "upstream", "reference"};
    return (unsigned)b < sizeof names / sizeof *names ? names[b] : "?";
}

/* ---- as text: a line for each row, and below a row that failed why ---- */

static void print_row(FILE *f, const compare_row *row)
{
    const adj_compare_error *e = larger_error(row);
    put_text(f, "  %%%-5d %-32s %5s  %-5s  err/bound %-9.3g  %s\n", adj_node_id(row->node),
             adj_compare_row_name(row), adj_dtype_name(row->type.dtype),
             adj_verdict_name(row->verdict), e->worst, row->implementation);
    if (row->verdict == ADJ_VERDICT_PASS)
        return;
    if (e->at >= 0)
        c_fprintf(f, "    %lld of %lld wrong, element %lld: got %.9g, expected %.9g +- %.2g\n",
                  (long long)e->wrong, (long long)e->n, (long long)e->at, e->got, e->expected,
                  e->bound);
    if (row->blame != ADJ_BLAME_NONE)
        fprintf(f, "    to blame: %s\n", adj_blame_name(row->blame));
    if (row->reason[0] != '\0')
        put_text(f, "    %s\n", row->reason);
}

void adj_comparison_print(FILE *f, const adj_comparison *c)
{
    if (c == NULL || f == NULL)
        return;
    for (int k = 0; k < c->n_config; k++) {
        const adj_compare_config_result *whole = &c->config[k];
        put_text(f, "%s%s: the whole graph: %s%s%s\n", k == 0 ? "reference " : "", whole->name,
                 adj_verdict_name(whole->verdict), whole->reason[0] != '\0' ? ": " : "",
                 whole->reason);
        for (int i = 0; i < c->n_row; i++) {
            const compare_row *row = adj_comparison_row_at(c, i);
            if (row != NULL && row->config == k)
                print_row(f, row);
        }
    }
    if (c->message[0] != '\0')
        put_text(f, "comparing failed: %s\n", c->message);
    fprintf(f, "summary: %d rows, %d failed\n", c->n_row, c->n_failed);
}
