/* json.c - what adjoint bench measured as one JSON object, and a step's trace. */
#include "bench.h"
#include "cli/json.h"

static int set(json_t *j, const char *key, json_t *value)
{
    return json_object_set_new(j, key, value);
}

static json_t *head(const bench_opts *o)
{
    char version[64] = "";
    (void)adj_backend_describe("onednn", version, sizeof version);
    return json_pack("{s:s, s:s, s:s*, s:s, s:s, s:i, s:f}", "adjoint", adj_version_text(),
                     "onednn", version, "model", o->model, "dtype", adj_dtype_name(o->dtype),
                     "math", o->math != NULL ? o->math : "exact", "threads", (int)o->threads,
                     "seconds", o->seconds);
}

/* ---- whole steps ---- */

static json_t *profile_json(const bench_profile *p)
{
    json_t *rows = json_array();
    int failed = rows == NULL;
    for (int i = 0; i < p->n && !failed; i++) {
        const adj_step_info *s = &p->row[i];
        failed = json_array_append_new(
            rows,
            json_pack("{s:s, s:s, s:i, s:i, s:s, s:s, s:f, s:f, s:I, s:f, s:s}", "op", s->op,
                      "name", s->name, "node", s->node != NULL ? adj_node_id(s->node) : -1, "nodes",
                      s->n_node, "backend", s->backend, "implementation", s->impl, "us",
                      1e6 * s->seconds, "flop", s->flop, "bytes", (json_int_t)s->bytes, "rate",
                      bench_rate(s), "unit", bench_counts_flop(s) ? "GFLOP/s" : "GB/s"));
    }
    return rows;
}

static int set_plan(json_t *j, const bench_net *n)
{
    adj_exec_info info = adj_exec_stats(n->exec);
    return set(j, "plan_ms", json_real(1e3 * n->plan_seconds)) |
           set(j, "arena_bytes", json_integer((json_int_t)info.arena_bytes)) |
           set(j, "live_bytes", json_integer((json_int_t)info.live_bytes)) |
           set(j, "storage_bytes", json_integer((json_int_t)info.storage_bytes)) |
           set(j, "steps", json_integer(info.steps)) | set(j, "timed", json_integer(info.timed)) |
           set(j, "cached", json_integer(info.cached)) |
           set(j, "reorders", json_integer(info.reorders)) |
           set(j, "naive_steps", json_integer(info.naive_steps)) |
           set(j, "note", json_text(adj_exec_warning(n->exec)));
}

int bench_json_step(FILE *f, const bench_opts *o, const bench_net *n, const bench_step_time *t,
                    const bench_profile *p)
{
    json_t *j = head(o);
    const spread *s = &t->time;
    int failed =
        j == NULL || set(j, "batch", json_integer(o->batch)) ||
        set(j, "infer", json_boolean(o->infer)) || set(j, "tune", json_boolean(o->tune)) ||
        set(j, "recompute", json_boolean(o->recompute)) || set(j, "runs", json_integer(s->n)) ||
        set(j, "median_ms", json_real(1e3 * s->median)) ||
        set(j, "min_ms", json_real(1e3 * s->min)) || set(j, "q1_ms", json_real(1e3 * s->q1)) ||
        set(j, "q3_ms", json_real(1e3 * s->q3)) ||
        set(j, "spread", json_real((s->q3 - s->q1) / s->median)) ||
        set(j, "images_per_s", json_real((double)o->batch / s->median)) ||
        set(j, "gflops", json_real(1e-9 * n->flop / s->median)) || set_plan(j, n) ||
        set(j, "peak_rss_bytes", json_integer((json_int_t)t->peak_rss)) ||
        set(j, "loss", json_number(t->loss));
    if (!failed && p != NULL)
        failed = set(j, "profile", profile_json(p));
    return json_write(f, j, JSON_PAGE, failed);
}

/* ---- kernels alone ---- */

static json_t *shapes_json(const adj_node *n)
{
    json_t *shapes = json_array();
    for (int i = 0; i <= n->n_in; i++) {
        adj_shape s = i < n->n_in ? n->in[i]->type.shape : n->type.shape;
        (void)json_array_append_new(shapes, json_sizes(s.rank, s.dim));
    }
    return shapes;
}

static json_t *row_json(const bench_row *r)
{
    double median = r->time.median;
    int measured = r->time.n > 0;
    return json_pack(
        "{s:s, s:i, s:o, s:i, s:s, s:s, s:s, s:i, s:o, s:o, s:o, s:o, s:I, s:i, s:b, s:b, s:o}",
        "op", r->node->op->name, "node", (int)r->node->id, "shapes", shapes_json(r->node), "count",
        r->count, "backend", r->backend, "implementation", r->impl, "layouts", r->layouts, "runs",
        r->time.n, "us", measured ? json_real(1e6 * median) : json_null(), "min_us",
        measured ? json_real(1e6 * r->time.min) : json_null(), "gflops",
        measured ? json_number(1e-9 * r->flop / median) : json_null(), "gb_per_s",
        measured ? json_number(1e-9 * (double)r->bytes / median) : json_null(), "bytes",
        (json_int_t)r->bytes, "sets", r->sets, "planned", r->planned, "fastest", r->fastest, "why",
        json_text(r->why));
}

int bench_json_rows(FILE *f, const bench_opts *o, const bench_rows *rows)
{
    json_t *j = head(o), *list = json_array();
    int cold = o->op.op != NULL ? !o->warm : o->cold, failed = j == NULL;
    for (int i = 0; i < rows->n && !failed; i++)
        failed = json_array_append_new(list, row_json(&rows->row[i]));
    if (!failed && o->raw)
        failed = set(j, "batch", json_integer(o->batch)) ||
                 set(j, "infer", json_boolean(o->infer)) ||
                 set(j, "convolutions", json_integer(rows->convolutions)) ||
                 set(j, "different", json_integer(rows->different)) ||
                 set(j, "fastest_ms", json_real(1e3 * rows->fastest_seconds)) ||
                 set(j, "planned_ms", json_real(1e3 * rows->planned_seconds));
    failed |= set(j, "buffers", json_string(cold ? "cold" : "warm")) | set(j, "rows", list);
    return json_write(f, j, JSON_PAGE, failed);
}

/* ---- a trace ---- */

int bench_trace(FILE *f, const void *source)
{
    const bench_profile *p = source;
    json_t *events = json_array();
    double at = 0;
    int failed = events == NULL;
    for (int i = 0; i < p->n && !failed; i++) {
        const adj_step_info *s = &p->row[i];
        double us = 1e6 * s->seconds;
        failed = json_array_append_new(
            events,
            json_pack("{s:s, s:s, s:s, s:f, s:f, s:i, s:i, s:{s:s, s:s, s:i, s:f, s:I, s:f, s:s}}",
                      "name", s->name[0] != '\0' ? s->name : s->op, "cat", s->op, "ph", "X", "ts",
                      at, "dur", us, "pid", 1, "tid", 1, "args", "op", s->op, "implementation",
                      s->impl, "node", s->node != NULL ? adj_node_id(s->node) : -1, "flop", s->flop,
                      "bytes", (json_int_t)s->bytes, "rate", bench_rate(s), "unit",
                      bench_counts_flop(s) ? "GFLOP/s" : "GB/s"));
        at += us;
    }
    json_t *j = json_pack("{s:o, s:s}", "traceEvents", events, "displayTimeUnit", "ns");
    return json_write(f, j, JSON_PAGE, failed);
}
