/* nodes.c - adj_compare: one graph under several configurations, node by node.
 *
 * Each configuration runs the whole graph (whole_graph.c: errors propagated and in_plan), then
 * every node alone on the reference's operands (isolated) against the op's formula, the reference
 * included. node_bound.c bounds errors, result_error.c measures them, group.c runs fused groups. */
#include <string.h>

#include "check/formula.h"
#include "compare.h"

/* ---- one node under one configuration ---- */

/* Returns the value of a node under configuration k. */
static const void *value_under(const comparing *r, int k, const adj_node *n, adj_dtype *dtype)
{
    if (r->index[n->id] >= 0) {
        *dtype = config_dtype(&r->c->config[k], n->type.dtype);
        return r->whole[k].value[r->index[n->id]];
    }
    *dtype = n->type.dtype;
    return r->leaf_value[n->id];
}

node_case case_of(const comparing *r, int k, const adj_node *n)
{
    node_case c = {.node = n};
    for (int i = 0; i < n->n_in; i++)
        c.operand[i] = value_under(r, k, n->in[i], &c.dtype[i]);
    return c;
}

void report_cost(const outcome *o, const fetch_info *f, double reference_seconds, compare_row *row)
{
    row->us = 1e6 * f->seconds;
    row->reference_us = 1e6 * reference_seconds;
    row->gflops = f->seconds > 0 ? 1e-9 * f->flop / f->seconds : 0;
    row->bytes = (size_t)f->bytes;
    row->reorders = o->reorders;
}

void report_alone(comparison *c, const outcome *o, int i, const expectation *e, compare_row *row)
{
    const adj_compare_config *config = &c->config[row->config];
    const fetch_info *f = &o->info[i];
    row->exact = e->exact;
    memcpy(row->origin, e->origin, sizeof row->origin);
    row->isolated = measure_error(row->type, o->value[i], e);
    row->repeats = f->repeats;
    for (int k = 0; k < o->n && f->step < 0; k++) /* in a group: any node that a step computes */
        f = o->info[k].step >= 0 ? &o->info[k] : f;
    snprintf(row->backend, sizeof row->backend, "%s", f->backend);
    snprintf(row->implementation, sizeof row->implementation, "%s", f->implementation);
    const char *other = other_impl(&c->log, config->impl, row->backend, row->implementation);
    row->other_impl = other[0] != '\0';
    if (row->other_impl)
        row->why = other;
}

static adj_status isolated(comparing *r, int k, region *p, compare_row *row)
{
    const adj_compare_config *config = &r->c->config[k];
    node_case n = case_of(r, 0, row->node);
    expectation e;
    outcome o;
    n.exact = r->opts->exact;
    n.is_alone = 1;
    n.by_formula = !is_repeated(r->g, r->needed, row->node, 0);
    adj_status status = node_expect(&r->runner, &n, config, p, &e, &o);
    if (status == ADJ_OK && o.status == ADJ_OK && k > 0)
        status = node_run(&r->runner, &n, config, p, &o);
    if (status != ADJ_OK)
        return status;
    if (o.status != ADJ_OK) {
        report_row_failure(r->c, &o, row);
        return ADJ_OK;
    }
    report_alone(r->c, &o, 0, &e, row);
    row->repeats |= k == 0; /* it is run once */
    if (!row->other_impl)
        row->why = log_text(&r->c->log, "%s", o.info[0].why);
    report_cost(&o, &o.info[0], r->whole[0].info[r->index[row->node->id]].seconds, row);
    report_plan_fault(r->c, &o, row);
    const int may_race =
        k > 0 && row->verdict == ADJ_VERDICT_PASS && is_wrong(&row->isolated) && row->repeats;
    return may_race ? blame_wrong_node(&r->runner, &n, config, &e, &r->c->log, p, row) : ADJ_OK;
}

/* Compares the value within the graph with the reference on the same operands. */
static adj_status within_the_graph(comparing *r, int k, region *p, compare_row *row)
{
    const adj_compare_config *config = &r->c->config[k];
    const int at = r->index[row->node->id];
    const void *value = r->whole[k].value[at];
    const node_case n = case_of(r, k, row->node);
    expectation e;
    outcome o;
    adj_status status = node_expect(&r->runner, &n, config, p, &e, &o);
    if (status == ADJ_OK && o.status == ADJ_OK)
        row->in_plan = measure_error(row->type, value, &e);
    if (is_wrong(&row->in_plan) && !is_wrong(&row->isolated) &&
        (status = node_run(&r->runner, &n, config, p, &o)) == ADJ_OK && o.status == ADJ_OK) {
        const adj_compare_error alone = measure_error(row->type, o.value[0], &e);
        row->wrong_on_own = is_wrong(&alone);
    }
    const expectation propagated = {.dtype = config_dtype(&r->c->config[0], row->node->type.dtype),
                                    .expected = r->whole[0].value[at]};
    row->propagated = measure_error(row->type, value, &propagated);
    return status;
}

/* True if the value, or the leaf, had the same bits in both runs of the whole graph. */
static int repeats_in_plan(const comparing *r, int k, const adj_node *n)
{
    return r->whole[k].status != ADJ_OK || r->index[n->id] < 0 ||
           r->whole[k].info[r->index[n->id]].repeats;
}

/* True if the value differs between runs although its operands do not. */
static int unsteady_in_plan(const comparing *r, int k, const adj_node *n)
{
    if (repeats_in_plan(r, k, n))
        return 0;
    for (int i = 0; i < n->n_in; i++)
        if (!repeats_in_plan(r, k, n->in[i]))
            return 0;
    return 1;
}

const char *report_worst(comparison *c, const char *where, const adj_compare_error *e)
{
    return log_text(&c->log,
                    "%s%s%lld of %lld wrong, worst at element %lld: got %.9g, expected %.9g", where,
                    where[0] != '\0' ? ": " : "", (long long)e->wrong, (long long)e->n,
                    (long long)e->at, e->got, e->expected);
}

const char *report_error(comparison *c, const adj_compare_error *e)
{
    if (is_noisy(e))
        return log_text(&c->log, "the whole result: RMS error %.3g, %.3g times what rounding gives",
                        e->rms, e->noise);
    if (!rounds_one_way(e))
        return "";
    return log_text(
        &c->log,
        "rounds to one side: the mean distance from the nearest value is %.2g of the RMS error",
        e->bias);
}

/* A sentence for what the numbers of the row do not show at once. */
static const char *reason_for(const comparing *r, const compare_row *row)
{
    if (row->config == 0 && row->isolated.wrong > 0)
        return report_worst(r->c, REFERENCE_IS_WRONG, &row->isolated);
    if (!row->repeats)
        return row->blame == ADJ_BLAME_KERNEL
                   ? "not repeatable: two runs on the same operands gave different bits"
                   : "not repeatable within the graph: two runs gave different bits, though its "
                     "operands had the same";
    if (row->wrong_on_own)
        return "wrong alone as well, on the operands that it had within the graph";
    if (row->blame == ADJ_BLAME_PLAN && r->whole[row->config].plan_fault[0] != '\0')
        return log_text(&r->c->log, "%s", r->whole[row->config].plan_fault);
    return report_error(r->c, is_wrong(&row->isolated) ? &row->isolated : &row->in_plan);
}

static void blame(const comparing *r, int k, compare_row *row)
{
    const adj_node *n = row->node;
    int alone = is_wrong(&row->isolated) || !row->repeats;
    row->repeats &= k == 0 || !unsteady_in_plan(r, k, n);
    if (row->verdict == ADJ_VERDICT_PASS && alone)
        row->blame = k == 0 ? ADJ_BLAME_REFERENCE : ADJ_BLAME_KERNEL;
    else if (row->verdict == ADJ_VERDICT_PASS && (is_wrong(&row->in_plan) || !row->repeats))
        row->blame = row->wrong_on_own ? ADJ_BLAME_KERNEL : ADJ_BLAME_PLAN;
    if (row->blame != ADJ_BLAME_NONE && row->verdict == ADJ_VERDICT_PASS) {
        row->verdict = ADJ_VERDICT_FAIL;
        row->reason = reason_for(r, row);
    }
    for (int i = 0; i < n->n_in && row->blame == ADJ_BLAME_NONE; i++)
        if (r->tainted[(size_t)n->in[i]->id * (size_t)r->c->n_config + (size_t)k])
            row->blame = ADJ_BLAME_UPSTREAM;
    r->tainted[(size_t)n->id * (size_t)r->c->n_config + (size_t)k] = row->blame != ADJ_BLAME_NONE;
}

/* Adds a row; for the reference only if it is wrong. */
static adj_status compare_node(comparing *r, const adj_node *n, int k)
{
    region p = {.allocator = r->c->log.region.allocator};
    compare_row *row = &r->c->row[r->c->n_row];
    const adj_type type = {config_dtype(&r->c->config[k], n->type.dtype), n->type.shape};
    *row = report_row(n, "", k, type);
    adj_status status = isolated(r, k, &p, row);
    if (status == ADJ_OK && !r->trials->alone)
        status = compare_special(r, k, row);
    if (status == ADJ_OK && k > 0 && r->whole[k].status == ADJ_OK)
        status = within_the_graph(r, k, &p, row);
    region_free(&p);
    if (status != ADJ_OK)
        return log_no_memory(&r->c->log);
    blame(r, k, row);
    r->c->n_row += k > 0 || row->verdict != ADJ_VERDICT_PASS;
    return r->c->log.status;
}

/* ---- blame by other rows: a pass, the reference, a group ---- */

static int has_op(const char *group, const char *op)
{
    const size_t n = strlen(op);
    for (const char *at = group; at != NULL; at = strchr(at, '+')) {
        at += *at == '+';
        if (strncmp(at, op, n) == 0 && (at[n] == '+' || at[n] == '\0'))
            return 1;
    }
    return 0;
}

/* True if the reference is wrong at a node of that op or group. */
static int is_wrong_at(const comparison *c, const compare_row *row)
{
    for (int i = 0; i < c->n_row; i++)
        if (c->row[i].blame == ADJ_BLAME_REFERENCE && c->row[i].group[0] == '\0' &&
            has_op(adj_compare_row_name(row), c->row[i].node->op->name))
            return 1;
    return 0;
}

static int is_numbers_of_kernel(const compare_row *row)
{
    const int is_pass = row->blame == ADJ_BLAME_PLAN && strncmp(row->reason, "pass ", 5) == 0;
    return (row->blame == ADJ_BLAME_KERNEL || is_pass) && row->verdict == ADJ_VERDICT_FAIL &&
           row->repeats && !row->canary;
}

/* Blames a failed row on a known fault of its configuration: a pass, or a kernel that overwrites
 * other values. */
static void blame_whole(const comparison *c, compare_row *row)
{
    const compare_result *whole = &c->result[row->config];
    const int is_pass = strncmp(whole->reason, "pass ", 5) == 0;
    const int is_memory = strncmp(whole->reason, "memory: ", 8) == 0;
    if (row->verdict != ADJ_VERDICT_FAIL || row->canary || row->blame == ADJ_BLAME_REFERENCE ||
        !(is_pass || (is_memory && row->blame == ADJ_BLAME_PLAN)))
        return;
    row->blame = is_pass ? ADJ_BLAME_PLAN : ADJ_BLAME_KERNEL;
    row->reason = whole->reason;
}

/* Returns the wrong group that computes the node in the graph, or NULL if there is none. */
static const compare_row *failed_group(const comparison *c, const compare_row *row)
{
    for (int i = 0; i < c->n_row; i++)
        if (c->row[i].group[0] != '\0' && c->row[i].node == row->node &&
            c->row[i].config == row->config && is_numbers_of_kernel(&c->row[i]))
            return &c->row[i];
    return NULL;
}

/* Blames a row that is right alone on the wrong group that computes it in the graph. */
static void blame_group(comparison *c, compare_row *row)
{
    const compare_row *group = failed_group(c, row);
    if (row->blame != ADJ_BLAME_PLAN || row->group[0] != '\0' || !is_wrong(&row->in_plan) ||
        group == NULL || strncmp(row->reason, "pass ", 5) == 0)
        return;
    row->blame = ADJ_BLAME_KERNEL;
    row->reason = log_text(&c->log, "in the graph it is computed as %.120s, which is wrong alone",
                           group->group);
}

/* Returns a row that explains why configuration k is wrong as a whole, or NULL. Passes are run on
 * naive, so that a wrong reference makes a pass look wrong; and a wrong kernel makes steps with
 * updates look wrong, where the two plans have different kernels. */
static const compare_row *explained_by(const comparison *c, int k)
{
    const int is_pass = strncmp(c->result[k].reason, "pass ", 5) == 0;
    const int is_update = strncmp(c->result[k].reason, "plan: after step", 16) == 0;
    for (int i = 0; i < c->n_row; i++) {
        const compare_row *row = &c->row[i];
        if ((is_pass && row->blame == ADJ_BLAME_REFERENCE) ||
            (is_update && row->blame == ADJ_BLAME_KERNEL && row->config == k))
            return row;
    }
    return NULL;
}

static void clear_wholes(comparison *c)
{
    for (int k = 0; k < c->n_config; k++) {
        const compare_row *wrong = explained_by(c, k);
        if (wrong != NULL)
            c->result[k].reason =
                log_text(&c->log, "the %s is wrong at %s: %.200s", adj_blame_name(wrong->blame),
                         adj_compare_row_name(wrong), c->result[k].reason);
    }
}

static void blame_alike(comparison *c)
{
    clear_wholes(c);
    for (int i = 0; i < c->n_row; i++)
        blame_whole(c, &c->row[i]);
    for (int i = 0; i < c->n_row; i++) {
        compare_row *row = &c->row[i];
        blame_group(c, row);
        if (!is_numbers_of_kernel(row) || !is_wrong_at(c, row))
            continue;
        row->blame = ADJ_BLAME_REFERENCE;
        row->reason =
            row->group[0] != '\0'
                ? "the reference is wrong at an op of the group, as that op's own row says"
                : "the reference is wrong at this op, as another row says";
    }
}

/* ---- all of them ---- */

/* Appends the groups' rows. */
static adj_status add_group_rows(comparing *r)
{
    comparison *c = r->c;
    int n = c->n_row;
    for (int k = 0; k < c->n_config; k++)
        n += r->n_group_row[k];
    compare_row *all = region_alloc(&c->log.region, (size_t)n, sizeof *all);
    if (all == NULL)
        return log_no_memory(&c->log);
    memcpy(all, c->row, (size_t)c->n_row * sizeof *all);
    c->row = all;
    for (int k = 0; k < c->n_config; k++)
        for (int i = 0; i < r->n_group_row[k]; i++)
            c->row[c->n_row++] = r->group_row[k][i];
    blame_alike(c);
    return ADJ_OK;
}

/* Runs the whole graph under every configuration; under the reference only where nodes are compared
 * alone. */
static void run_wholes(comparing *r)
{
    comparison *c = r->c;
    for (int k = 0; k < c->n_config && c->log.status == ADJ_OK; k++) {
        if (k > 0 && r->trials->alone)
            r->whole[k].status = ADJ_EBACKEND; /* not run */
        else
            compare_whole(r, k);
        if (k == 0 && c->log.status == ADJ_OK && r->whole[0].status != ADJ_OK)
            log_fail(&c->log, r->whole[0].status, "adj_compare: the reference %s failed: %s",
                     c->config[0].name, r->whole[0].message);
    }
}

/* True if the node gets a row; for the reference, once per kind of node. */
static int is_compared(const comparing *r, const adj_node *n, int k)
{
    const int is_first = !is_repeated(r->g, r->needed, n, 0);
    if (k == 0)
        return is_first && formula_exists(n);
    return !r->trials->alone || (is_first && strcmp(r->c->config[k].backend, "naive") != 0);
}

adj_status compare_all(comparing *r)
{
    comparison *c = r->c;
    run_wholes(r);
    for (int id = 0; id < r->g->n_node && c->log.status == ADJ_OK; id++)
        for (int k = 0; k < c->n_config && c->log.status == ADJ_OK && r->index[id] >= 0; k++)
            if (is_compared(r, r->g->node[id], k))
                compare_node(r, r->g->node[id], k);
    return c->log.status == ADJ_OK ? add_group_rows(r) : c->log.status;
}
