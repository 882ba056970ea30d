/* reports.c - a comparison as JSON and as JUnit's XML. */
#include <math.h>

#include "base/printable.h"
#include "cli/json.h"
#include "compare.h"

/* ---- JSON: one object ---- */

static json_t *error_json(const adj_compare_error *e)
{
    return json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:I, s:I, s:I, "
                     "s:I, s:o, s:o, s:o, s:o}",
                     "n", (json_int_t)e->n, "wrong", (json_int_t)e->wrong, "max_abs",
                     json_number(e->max_abs), "max_rel", json_number(e->max_rel), "max_ulp",
                     json_number(e->max_ulp), "nmse", json_number(e->nmse), "sqnr_db",
                     json_number(e->sqnr), "error_over_bound", json_number(e->worst), "at",
                     (json_int_t)e->at, "got", json_number(e->got), "expected",
                     json_number(e->expected), "bound", json_number(e->bound), "nan",
                     (json_int_t)e->nan, "inf", (json_int_t)e->inf, "zeros", (json_int_t)e->zeros,
                     "zeros_expected", (json_int_t)e->zeros_expected, "rms", json_number(e->rms),
                     "rms_over_rounding", json_number(e->noise), "rms_limit",
                     json_number(e->noise_limit), "bias", json_number(e->bias));
}

static json_t *row_json(const adj_comparison *c, const compare_row *row)
{
    return json_pack(
        "{s:b, s:i, s:o, s:o, s:o, s:s, s:s, s:o, s:s, s:s, s:s, s:o, s:b, s:b, s:b, s:o, s:o, "
        "s:o, s:I, s:i, s:o, s:o, s:o}",
        "fused", row->group[0] != '\0', "node", adj_node_id(row->node), "op",
        json_text(adj_compare_row_name(row)), "name", json_text(adj_node_name(row->node)),
        "configuration", json_text(c->config[row->config].name), "result",
        adj_verdict_name(row->verdict), "blame", adj_blame_name(row->blame), "reason",
        json_text(row->reason), "bound_origin", row->origin, "backend", row->backend,
        "implementation", row->implementation, "why", json_text(row->why), "exact", row->exact,
        "repeats", row->repeats, "canary", row->canary, "us", json_number(row->us), "reference_us",
        json_number(row->reference_us), "gflops", json_number(row->gflops), "bytes",
        (json_int_t)row->bytes, "reorders", row->reorders, "isolated", error_json(&row->isolated),
        "in_graph", error_json(&row->in_plan), "propagated", error_json(&row->propagated));
}

static json_t *config_json(const adj_comparison *c, int k)
{
    compare_result r = adj_comparison_result_at(c, k);
    const int ran = has_whole_run(&r);
    return json_pack("{s:o, s:s, s:o, s:o, s:i, s:i, s:i, s:I, s:o, s:i, s:o, s:o}", "name",
                     json_text(c->config[k].name), "result", adj_verdict_name(r.verdict), "reason",
                     json_text(r.reason), "ms", json_number(ran ? r.ms : NAN), "steps", r.steps,
                     "reorders", r.reorders, "naive_steps", r.naive_steps, "arena_bytes",
                     (json_int_t)r.arena_bytes, "repeats",
                     ran ? json_boolean(r.repeats) : json_null(), "differs", r.differs, "apart",
                     json_number(r.apart), "reference_apart", json_number(r.reference_apart));
}

static json_t *comparison_json(const compare_run *o, int *failed)
{
    const adj_comparison *c = o->comparison;
    json_t *configs = json_array(), *rows = json_array(), *again = json_array();
    for (int k = 0; k < c->n_config; k++)
        *failed |= json_array_append_new(configs, config_json(c, k));
    for (int i = 0; i < c->n_row; i++)
        *failed |= json_array_append_new(rows, row_json(c, adj_comparison_row_at(c, i)));
    for (int k = 0; k < c->n_config; k++) {
        const reproducer *r = &o->again[k];
        if (r->line[0] != '\0')
            *failed |= json_array_append_new(
                again,
                json_pack("{s:o, s:i, s:i, s:o}", "configuration", json_text(c->config[k].name),
                          "node", r->row != NULL ? adj_node_id(r->row->node) : -1, "trials",
                          r->tried, "line", json_text(r->line)));
    }
    return json_pack("{s:o, s:o, s:i, s:i, s:o, s:o, s:o}", "what", json_text(o->title), "repro",
                     json_text(o->line), "failed", c->n_failed, "whole_failed", c->n_whole_failed,
                     "configurations", configs, "again", again, "rows", rows);
}

int write_json(FILE *f, const void *source)
{
    const compare_run *o = source;
    int failed = 0;
    json_t *all = comparison_json(o, &failed);
    if (o->also != NULL)
        failed |= json_object_set_new(all, "also", comparison_json(o->also, &failed));
    return json_write(f, all, JSON_PAGE, failed);
}

/* ---- JUnit: a test case for every row, a suite for every configuration ---- */

static void junit_case(FILE *f, const adj_comparison *c, const compare_row *row,
                       const reproducer *again)
{
    const adj_compare_error *e = row->isolated.wrong > 0 ? &row->isolated : &row->in_plan;
    put_escaped(f, FOR_XML, "  <testcase classname=\"%s\" name=\"%%%d %s\" time=\"%.9f\"",
                c->config[row->config].name, adj_node_id(row->node), adj_compare_row_name(row),
                1e-6 * row->us);
    if (row->verdict == ADJ_VERDICT_PASS) {
        fputs("/>\n", f);
        return;
    }
    put_escaped(f, FOR_XML, "><failure type=\"%s\" message=\"%s", adj_verdict_name(row->verdict),
                row->reason);
    if (row->reason[0] == '\0')
        fprintf(f, "%lld of %lld wrong, worst at %lld: got %.9g, expected %.9g +- %.2g",
                (long long)e->wrong, (long long)e->n, (long long)e->at, e->got, e->expected,
                e->bound);
    fprintf(f, "; to blame: %s", adj_blame_name(row->blame));
    if (again->row == row)
        put_escaped(f, FOR_XML, "; again: %s", again->line);
    fputs("\"/></testcase>\n", f);
}

/* The run of the whole graph, as a test case too. */
static void junit_whole(FILE *f, const adj_comparison *c, int k)
{
    compare_result r = adj_comparison_result_at(c, k);
    put_escaped(f, FOR_XML, "  <testcase classname=\"%s\" name=\"the whole graph\" time=\"%.9f\"",
                c->config[k].name, 1e-3 * r.ms);
    if (r.verdict != ADJ_VERDICT_PASS)
        put_escaped(f, FOR_XML, "><failure type=\"%s\" message=\"%s\"/></testcase>\n",
                    adj_verdict_name(r.verdict), r.reason);
    else
        fputs("/>\n", f);
}

/* before: prefix of the suites' names. */
static void junit_suites(FILE *f, const compare_run *o, const char *before)
{
    const adj_comparison *c = o->comparison;
    for (int k = 0; k < c->n_config; k++) { /* the reference has rows where it is wrong */
        int n = 1, failed = adj_comparison_result_at(c, k).verdict != ADJ_VERDICT_PASS;
        for (int i = 0; i < c->n_row; i++) {
            const compare_row *row = adj_comparison_row_at(c, i);
            n += row->config == k;
            failed += row->config == k && row->verdict != ADJ_VERDICT_PASS;
        }
        put_escaped(f, FOR_XML, " <testsuite name=\"%s%s%s\" tests=\"%d\" failures=\"%d\">\n",
                    before, before[0] != '\0' ? ": " : "", c->config[k].name, n, failed);
        junit_whole(f, c, k);
        for (int i = 0; i < c->n_row; i++)
            if (adj_comparison_row_at(c, i)->config == k)
                junit_case(f, c, adj_comparison_row_at(c, i), &o->again[k]);
        fputs(" </testsuite>\n", f);
    }
}

int write_junit(FILE *f, const void *source)
{
    const compare_run *o = source;
    put_escaped(f, FOR_XML,
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"%s\">\n", o->title);
    junit_suites(f, o, "");
    if (o->also != NULL)
        junit_suites(f, o->also, o->also->title);
    fputs("</testsuites>\n", f);
    return ferror(f);
}
