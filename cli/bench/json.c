/* json.c - results of adjoint bench as one JSON object, or as text. */
#include "json.h"

#include "cli/command.h"
#include "cli/json.h"
#include "cli/output.h"
#include "exec/report.h"

/* Adds the members of more, which is freed. Returns 0 on success. */
static int add(json_t *j, json_t *more)
{
    int failed = json_object_update(j, more);
    json_decref(more);
    return failed;
}

static json_t *head(const bench_opts *o)
{
    char version[64] = "";
    (void)adj_backend_describe("onednn", version, sizeof version);
    return json_pack("{s:s, s:s, s:s*, s:s, s:s, s:s, s:i, s:f}", "adjoint", adj_version_text(),
                     "onednn", version, "model", o->model, "dtype", adj_dtype_name(o->dtype),
                     "precision", o->precision_word != NULL ? o->precision_word : "f32", "math",
                     o->math != NULL ? o->math : "exact", "threads", (int)o->threads, "seconds",
                     o->seconds);
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

json_t *bench_json_step(const void *source)
{
    const bench_report *r = source;
    const bench_opts *o = r->o;
    const bench_net *n = r->net;
    const bench_step_time *t = r->time;
    json_t *j = head(o);
    const spread *s = &t->time;
    const adj_exec_info info = *r->plan;
    const exec_details details = *r->details;
    int failed =
        add(j, json_pack("{s:I, s:b, s:b, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "batch",
                         (json_int_t)o->batch, "infer", (int)o->infer, "tune", (int)o->tune, "runs",
                         s->n, "median_ms", 1e3 * s->median, "min_ms", 1e3 * s->min, "q1_ms",
                         1e3 * s->q1, "q3_ms", 1e3 * s->q3, "spread", (s->q3 - s->q1) / s->median,
                         "images_per_s", (double)o->batch / s->median, "gflops",
                         1e-9 * n->flop / s->median));
    failed |= add(
        j, json_pack("{s:f, s:I, s:I, s:I, s:I, s:I, s:i, s:i, s:i, s:i, s:i, s:i, s:o, s:I, "
                     "s:o}",
                     "plan_ms", 1e3 * n->plan_seconds, "arena_bytes", (json_int_t)info.arena_bytes,
                     "live_bytes", (json_int_t)details.live_bytes, "storage_bytes",
                     (json_int_t)info.storage_bytes, "read_bytes", (json_int_t)details.read_bytes,
                     "written_bytes", (json_int_t)details.written_bytes, "steps", info.steps,
                     "recomputed", details.recomputed, "timed", details.timed, "cached",
                     details.cached, "reorders", details.reorders, "naive_steps", info.naive_steps,
                     "warning", json_text(adj_exec_warning(n->exec)), "peak_rss_bytes",
                     (json_int_t)t->peak_rss, "loss", json_number(t->loss)));
    return failed ? json_decref(j), NULL : j;
}

/* ---- writing ---- */

typedef struct {
    json_t *(*make)(const void *source);
    const void *source;
    const bench_profile *profile;
} writer;

static int write_json(FILE *f, const void *source)
{
    const writer *w = source;
    json_t *j = w->make(w->source);
    const int failed =
        w->profile != NULL && json_object_set_new(j, "profile", profile_json(w->profile));
    return json_write(f, j, JSON_PAGE, failed);
}

int bench_write(const bench_opts *o, const bench_profile *p, json_t *(*make)(const void *source),
                const void *source)
{
    const writer w = {make, source, p};
    if (bench_prints(o)) {
        if (json_print(stdout, make(source), 0) != 0)
            return EXIT_FAILED;
        if (p != NULL)
            bench_profile_print(stdout, p);
    }
    return write_output("bench", &(output_file){"--json", o->json, OUTPUT_REPORT}, write_json, &w);
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
        "{s:s, s:i, s:o, s:i, s:s, s:s, s:s, s:i, s:o, s:o, s:f, s:o, s:o, s:I, s:b, s:i, s:b, "
        "s:o}",
        "op", r->node->op->name, "node", (int)r->node->id, "shapes", shapes_json(r->node), "count",
        r->count, "backend", r->backend, "implementation", r->impl, "layouts", r->layouts, "runs",
        r->time.n, "us", measured ? json_real(1e6 * median) : json_null(), "min_us",
        measured ? json_real(1e6 * r->time.min) : json_null(), "estimate_us", 1e6 * r->estimate,
        "gflops", measured ? json_number(1e-9 * r->flop / median) : json_null(), "gb_per_s",
        measured ? json_number(1e-9 * (double)r->bytes / median) : json_null(), "bytes",
        (json_int_t)r->bytes, "planned", r->planned > 0, "planned_count", r->planned, "fastest",
        r->fastest, "why", json_text(r->why));
}

json_t *bench_json_sums(const bench_opts *o, const bench_rows *rows)
{
    return json_pack(
        "{s:I, s:b, s:b, s:i, s:i, s:f, s:f, s:f, s:o, s:i, s:i}", "batch", (json_int_t)o->batch,
        "infer", (int)o->infer, "tune", (int)o->tune, "convolutions", rows->convolutions,
        "different", rows->different, "fastest_ms", 1e3 * rows->fastest_seconds, "planned_ms",
        1e3 * rows->planned_seconds, "rival_ms", 1e3 * rows->rival_seconds, "regret",
        json_number(bench_regret(rows)), "unmatched", rows->unmatched, "untimed", rows->untimed);
}

int bench_json_rows(FILE *f, const void *source)
{
    const bench_report *r = source;
    const bench_opts *o = r->o;
    const bench_rows *rows = r->rows;
    json_t *j = head(o), *list = json_array();
    int failed = 0;
    for (int i = 0; i < rows->n && !failed; i++)
        failed = json_array_append_new(list, row_json(&rows->row[i]));
    if (o->raw)
        failed |= add(j, bench_json_sums(o, rows));
    failed |= add(j, json_pack("{s:s, s:o}", "buffers", o->warm ? "warm" : "cold", "rows", list));
    return json_write(f, j, JSON_PAGE, failed);
}
