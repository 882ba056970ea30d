/* json.c - a comparison for programs, as one JSON object. */
#include <math.h>
#include <stddef.h>

#include "cli/json.h"
#include "graph/printable.h"
#include "write.h"

typedef struct {
    const char *name;
    enum { TEXT, TRUTH, WHOLE, REAL } kind;
    const char *text;
    int64_t whole;
    double real;
} fact;

/* ---- an error's measures ---- */

static const struct {
    const char *name;
    int is_real;
    size_t offset;
} measures[] = {
    {"n", 0, offsetof(adj_compare_error, n)},
    {"wrong", 0, offsetof(adj_compare_error, wrong)},
    {"max_abs", 1, offsetof(adj_compare_error, max_abs)},
    {"max_rel", 1, offsetof(adj_compare_error, max_rel)},
    {"max_ulp", 1, offsetof(adj_compare_error, max_ulp)},
    {"nmse", 1, offsetof(adj_compare_error, nmse)},
    {"sqnr_db", 1, offsetof(adj_compare_error, sqnr)},
    {"error_over_bound", 1, offsetof(adj_compare_error, worst)},
    {"at", 0, offsetof(adj_compare_error, at)},
    {"got", 1, offsetof(adj_compare_error, got)},
    {"expected", 1, offsetof(adj_compare_error, expected)},
    {"bound", 1, offsetof(adj_compare_error, bound)},
    {"nan", 0, offsetof(adj_compare_error, nan)},
    {"inf", 0, offsetof(adj_compare_error, inf)},
    {"zeros", 0, offsetof(adj_compare_error, zeros)},
    {"zeros_expected", 0, offsetof(adj_compare_error, zeros_expected)},
    {"lost", 0, offsetof(adj_compare_error, lost)},
    {"solid", 0, offsetof(adj_compare_error, solid)},
};
enum { MEASURES = sizeof measures / sizeof *measures, ERRORS = 3 };
static const char *const error_names[ERRORS] = {"isolated", "in_graph", "propagated"};

static const adj_compare_error *error_of(const adj_compare_row *row, int i)
{
    return (const adj_compare_error *[]){&row->isolated, &row->in_plan, &row->propagated}[i];
}

static fact measure_of(const adj_compare_error *e, int i)
{
    const void *v = (const char *)e + measures[i].offset;
    return measures[i].is_real ? (fact){measures[i].name, REAL, .real = *(const double *)v}
                               : (fact){measures[i].name, WHOLE, .whole = *(const int64_t *)v};
}

/* ---- a row's other facts ---- */

enum { FACTS = 19 };

static void list_facts(const adj_comparison *c, const adj_compare_row *row, fact to[FACTS])
{
    const fact facts[FACTS] = {
        {"node", WHOLE, .whole = adj_node_id(row->node)},
        {"op", TEXT, .text = adj_compare_row_name(row)},
        {"name", TEXT, .text = adj_node_name(row->node)},
        {"configuration", TEXT, .text = adj_comparison_config_at(c, row->config)->name},
        {"result", TEXT, .text = adj_verdict_name(row->verdict)},
        {"blame", TEXT, .text = adj_blame_name(row->blame)},
        {"reason", TEXT, .text = row->reason},
        {"bound_origin", TEXT, .text = row->origin},
        {"backend", TEXT, .text = row->backend},
        {"implementation", TEXT, .text = row->implementation},
        {"why", TEXT, .text = row->why},
        {"exact", TRUTH, .whole = row->exact},
        {"repeats", TRUTH, .whole = row->repeats},
        {"canary", TRUTH, .whole = row->canary},
        {"us", REAL, .real = row->us},
        {"reference_us", REAL, .real = row->reference_us},
        {"gflops", REAL, .real = row->gflops},
        {"bytes", WHOLE, .whole = (int64_t)row->bytes},
        {"reorders", WHOLE, .whole = row->reorders},
    };
    for (int i = 0; i < FACTS; i++)
        to[i] = facts[i];
}

/* ---- the object ---- */

static int json_fact(json_t *j, const fact *v)
{
    return json_object_set_new(j, v->name,
                               v->kind == TEXT    ? json_text(v->text)
                               : v->kind == TRUTH ? json_boolean(v->whole)
                               : v->kind == WHOLE ? json_integer((json_int_t)v->whole)
                                                  : json_number(v->real));
}

static json_t *error_json(const adj_compare_error *e)
{
    json_t *j = json_object();
    int failed = 0;
    for (int m = 0; m < MEASURES; m++) {
        const fact v = measure_of(e, m);
        failed |= json_fact(j, &v);
    }
    return failed ? json_decref(j), NULL : j;
}

static json_t *row_json(const adj_comparison *c, const adj_compare_row *row)
{
    json_t *j = json_pack("{s:b}", "fused", row->group[0] != '\0');
    fact facts[FACTS];
    int failed = 0;
    list_facts(c, row, facts);
    for (int i = 0; i < FACTS; i++)
        failed |= json_fact(j, &facts[i]);
    for (int i = 0; i < ERRORS; i++)
        failed |= json_object_set_new(j, error_names[i], error_json(error_of(row, i)));
    return failed ? json_decref(j), NULL : j;
}

static json_t *config_json(const adj_comparison *c, int k)
{
    adj_compare_config_result r = adj_comparison_result_at(c, k);
    const int ran = has_whole_run(&r);
    return json_pack("{s:o, s:s, s:o, s:o, s:i, s:i, s:i, s:I, s:o, s:i, s:o, s:o}", "name",
                     json_text(adj_comparison_config_at(c, k)->name), "result",
                     adj_verdict_name(r.verdict), "reason", json_text(r.reason), "ms",
                     json_number(ran ? r.ms : NAN), "steps", r.steps, "reorders", r.reorders,
                     "naive_steps", r.naive_steps, "arena_bytes", (json_int_t)r.arena_bytes,
                     "repeats", ran ? json_boolean(r.repeats) : json_null(), "differs", r.differs,
                     "apart", json_number(r.apart), "reference_apart",
                     json_number(r.reference_apart));
}

static json_t *again_json(const adj_comparison *c, int k, const reproducer *r)
{
    return json_pack("{s:o, s:i, s:i, s:o}", "configuration",
                     json_text(adj_comparison_config_at(c, k)->name), "node",
                     r->row != NULL ? adj_node_id(r->row->node) : -1, "trials", r->tried, "line",
                     json_text(r->line));
}

static json_t *comparison_json(const compare_source *o, int *failed)
{
    const adj_comparison *c = o->comparison;
    json_t *configs = json_array(), *rows = json_array(), *again = json_array();
    for (int k = 0; k < adj_comparison_config_count(c); k++)
        *failed |= json_array_append_new(configs, config_json(c, k));
    for (int i = 0; i < adj_comparison_row_count(c); i++)
        *failed |= json_array_append_new(rows, row_json(c, adj_comparison_row_at(c, i)));
    for (int k = 1; k < adj_comparison_config_count(c); k++)
        if (o->again[k].line[0] != '\0')
            *failed |= json_array_append_new(again, again_json(c, k, &o->again[k]));
    return json_pack("{s:o, s:o, s:i, s:i, s:o, s:o, s:o}", "what", json_text(o->title), "repro",
                     json_text(o->repro), "failed", adj_comparison_failed_count(c), "whole_failed",
                     adj_comparison_whole_failed_count(c), "configurations", configs, "again",
                     again, "rows", rows);
}

int write_json(FILE *f, const void *source)
{
    const compare_source *o = source;
    int failed = 0;
    json_t *all = comparison_json(o, &failed);
    if (o->also != NULL)
        failed |= json_object_set_new(all, "also", comparison_json(o->also, &failed));
    return json_write(f, all, JSON_PAGE, failed);
}
