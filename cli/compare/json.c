/* json.c - a comparison as one JSON object. What is no number in JSON (an infinite ratio,
 * an error that was not measured) is null. */
#include <math.h>

#include "write.h"
#include "cli/utf8.h"

static json_t *number(double v) { return isfinite(v) ? json_real(v) : json_null(); }

static json_t *error_json(const adj_compare_error *e)
{
    return json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:I, s:I, s:I, "
                     "s:I, s:I, s:I}",
                     "n", (json_int_t)e->n, "wrong", (json_int_t)e->wrong, "max_abs",
                     number(e->max_abs), "max_rel", number(e->max_rel), "max_ulp",
                     number(e->max_ulp), "nmse", number(e->nmse), "sqnr_db", number(e->sqnr),
                     "error_over_bound", number(e->worst), "at", (json_int_t)e->at, "got",
                     number(e->got), "expected", number(e->expected), "bound", number(e->bound),
                     "nan", (json_int_t)e->nan, "inf", (json_int_t)e->inf, "zeros",
                     (json_int_t)e->zeros, "zeros_expected", (json_int_t)e->zeros_expected, "lost",
                     (json_int_t)e->lost, "solid", (json_int_t)e->solid);
}

static json_t *row_json(const adj_comparison *c, const adj_compare_row *row)
{
    json_t *j = json_pack(
        "{s:i, s:s, s:s, s:o, s:s, s:s, s:o, s:s, s:b, s:b, s:b, s:s, s:s, s:o}", "node",
        adj_node_id(row->node), "op", adj_compare_row_name(row), "name", adj_node_name(row->node),
        "configuration", json_text(adj_comparison_config_at(c, row->config)->name), "result",
        adj_verdict_name(row->verdict), "blame", adj_blame_name(row->blame), "reason",
        json_text(row->reason), "bound_origin", row->origin, "exact", row->exact, "repeats",
        row->repeats, "canary", row->canary, "backend", row->backend, "implementation",
        row->implementation, "why", json_text(row->why));
    if (j == NULL)
        return NULL;
    int failed = json_object_set_new(j, "isolated", error_json(&row->isolated)) |
                 json_object_set_new(j, "in_graph", error_json(&row->in_plan)) |
                 json_object_set_new(j, "propagated", error_json(&row->propagated)) |
                 json_object_set_new(j, "fused", json_boolean(row->group[0] != '\0')) |
                 json_object_set_new(j, "kinks", json_integer((json_int_t)row->kinks)) |
                 json_object_set_new(j, "us", number(row->us)) |
                 json_object_set_new(j, "reference_us", number(row->reference_us)) |
                 json_object_set_new(j, "gflops", number(row->gflops)) |
                 json_object_set_new(j, "bytes", json_integer((json_int_t)row->bytes)) |
                 json_object_set_new(j, "reorders", json_integer(row->reorders));
    if (failed)
        json_decref(j);
    return failed ? NULL : j;
}

static json_t *config_json(const adj_comparison *c, int k)
{
    adj_compare_config_result r = adj_comparison_result_at(c, k);
    return json_pack("{s:o, s:s, s:o, s:o, s:i, s:i, s:i, s:I, s:b, s:i, s:o, s:o}", "name",
                     json_text(adj_comparison_config_at(c, k)->name), "result",
                     adj_verdict_name(r.verdict), "reason", json_text(r.reason), "ms", number(r.ms),
                     "steps", r.steps, "reorders", r.reorders, "naive_steps", r.naive_steps,
                     "arena_bytes", (json_int_t)r.arena_bytes, "repeats", r.repeats, "differs",
                     r.differs, "apart", number(r.apart), "reference_apart",
                     number(r.reference_apart));
}

static json_t *again_json(const adj_comparison *c, int k, const reproducer *r)
{
    return json_pack("{s:o, s:i, s:i, s:o}", "configuration",
                     json_text(adj_comparison_config_at(c, k)->name), "node",
                     r->row != NULL ? adj_node_id(r->row->node) : -1, "trials", r->tried, "line",
                     json_text(r->line));
}

int write_json(FILE *f, const adj_comparison *c, const write_opts *o)
{
    json_t *configs = json_array(), *rows = json_array(), *again = json_array();
    int failed = 0;
    for (int k = 0; k < adj_comparison_config_count(c); k++)
        failed |= json_array_append_new(configs, config_json(c, k)) != 0;
    for (int i = 0; i < adj_comparison_row_count(c); i++)
        failed |= json_array_append_new(rows, row_json(c, adj_comparison_row_at(c, i))) != 0;
    for (int k = 1; k < adj_comparison_config_count(c); k++)
        if (o->again[k].line[0] != '\0')
            failed |= json_array_append_new(again, again_json(c, k, &o->again[k])) != 0;
    json_t *all = json_pack("{s:o, s:o, s:i, s:i, s:o, s:o, s:o}", "what", json_text(o->what),
                            "repro", json_text(o->repro), "failed", adj_comparison_failed_count(c),
                            "whole_failed", adj_comparison_whole_failed_count(c), "configurations",
                            configs, "again", again, "rows", rows);
    failed |= all == NULL || json_dumpf(all, f, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) != 0 ||
              fputc('\n', f) == EOF;
    json_decref(all);
    return failed;
}
