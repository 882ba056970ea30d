/* json.c - results of adjoint bench as one JSON object, or as text. */
#include "json.h"

#include "cli/command.h"
#include "cli/json.h"
#include "cli/output.h"
#include "exec/report.h"

json_t *bench_json_head(const bench_opts *o)
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
    json_t *j = bench_json_head(o);
    const spread *s = &t->time;
    int failed = json_object_update_new(
        j,
        json_pack("{s:I, s:b, s:b, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "batch",
                  (json_int_t)o->batch, "infer", (int)o->infer, "tune", (int)o->tune, "runs", s->n,
                  "median_ms", 1e3 * s->median, "min_ms", 1e3 * s->min, "q1_ms", 1e3 * s->q1,
                  "q3_ms", 1e3 * s->q3, "spread", (s->q3 - s->q1) / s->median, "images_per_s",
                  (double)o->batch / s->median, "gflops", 1e-9 * n->flop / s->median));
    failed |= json_object_update_new(
        j, json_pack(
               "{s:f, s:I, s:I, s:I, s:I, s:I, s:i, s:i, s:i, s:i, s:i, s:i, s:o, s:I, "
               "s:o}",
               "plan_ms", 1e3 * n->plan_seconds, "arena_bytes", (json_int_t)r->plan.arena_bytes,
               "live_bytes", (json_int_t)r->details.live_bytes, "storage_bytes",
               (json_int_t)r->plan.storage_bytes, "read_bytes", (json_int_t)r->details.read_bytes,
               "written_bytes", (json_int_t)r->details.written_bytes, "steps", r->plan.steps,
               "recomputed", r->details.recomputed, "timed", r->details.timed, "cached",
               r->details.cached, "reorders", r->details.reorders, "naive_steps",
               r->plan.naive_steps, "warning", json_text(adj_exec_warning(n->exec)),
               "peak_rss_bytes", (json_int_t)t->peak_rss, "loss", json_number(t->loss)));
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
    if (!is_stdout(o->json)) {
        if (json_print(stdout, make(source), 0) != 0)
            return EXIT_FAILED;
        if (p != NULL)
            bench_profile_print(stdout, p);
    }
    return write_output("bench", &(output_file){"--json", o->json, OUTPUT_REPORT}, write_json, &w);
}
