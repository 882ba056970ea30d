/* rows.c - kernels alone as rows: the planned and the fastest of each node, their sums, the table.
 */
#include "bench.h"

#include <stdlib.h>

#include "cli/command.h"
#include "cli/json.h"
#include "cli/standard.h"

/* ---- repeated measurements: median, minimum, quartiles ---- */

enum { MAX_SAMPLES = 1 << 20 };

int samples_add(samples *s, double seconds)
{
    if (s->n == MAX_SAMPLES)
        return 0;
    s->seconds = make_room(s->seconds, s->n, sizeof *s->seconds);
    s->seconds[s->n++] = seconds;
    return 1;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

spread samples_spread(samples *s)
{
    if (s->n == 0)
        return (spread){0};
    qsort(s->seconds, (size_t)s->n, sizeof *s->seconds, by_value);
    return (spread){.n = s->n,
                    .median = s->seconds[s->n / 2],
                    .min = s->seconds[0],
                    .q1 = s->seconds[s->n / 4],
                    .q3 = s->seconds[(int)((int64_t)s->n * 3 / 4)]};
}

void samples_free(samples *s)
{
    free(s->seconds);
    *s = (samples){0};
}

/* ---- rows ---- */

bench_row *bench_new_row(bench_rows *rows, const candidate *c)
{
    rows->row = make_room(rows->row, rows->n, sizeof *rows->row);
    bench_row *row = &rows->row[rows->n++];
    *row = (bench_row){.node = c->group->node[0],
                       .estimate = c->prep->seconds,
                       .backend = c->backend->name,
                       .flop = bench_flop(c->group->node[0])};
    name_layouts(c, row->layouts, sizeof row->layouts);
    snprintf(row->impl, sizeof row->impl, "%s", c->prep->impl);
    return row;
}

static bench_row *fastest(const bench_rows *rows, int first)
{
    bench_row *best = NULL;
    for (int i = first; i < rows->n; i++)
        if (rows->row[i].time.n > 0 && (best == NULL || rows->row[i].time.min < best->time.min))
            best = &rows->row[i];
    return best;
}

void bench_rows_sum(bench_rows *rows, int first, int all)
{
    bench_row *best = fastest(rows, first);
    if (best == NULL)
        return;
    best->fastest = 1;
    rows->fastest_seconds += best->count * best->time.min;
    const double fastest_time = best->time.min;
    int n = first;
    for (int i = first; i < rows->n; i++) {
        const bench_row r = rows->row[i];
        int planned = r.time.n > 0 ? r.planned : 0;
        rows->planned_seconds += planned * r.time.min;
        rows->rival_seconds += planned * fastest_time;
        if (all || r.planned > 0 || r.fastest)
            rows->row[n++] = r;
    }
    rows->n = n;
}

/* ---- JSON ---- */

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

/* Returns the sums of the rows of --raw. regret: planned over fastest time, at least 1; null if no
 * planned kernel was timed. */
static json_t *sums_json(const bench_opts *o, const bench_rows *rows)
{
    return json_pack("{s:I, s:b, s:b, s:i, s:i, s:f, s:f, s:f, s:o, s:i, s:i}", "batch",
                     (json_int_t)o->batch, "infer", (int)o->infer, "tune", (int)o->tune,
                     "convolutions", rows->convolutions, "different", rows->different, "fastest_ms",
                     1e3 * rows->fastest_seconds, "planned_ms", 1e3 * rows->planned_seconds,
                     "rival_ms", 1e3 * rows->rival_seconds, "regret",
                     json_number(rows->planned_seconds / rows->rival_seconds), "unmatched",
                     rows->unmatched, "untimed", rows->untimed);
}

static json_t *rows_json(const bench_opts *o, const bench_rows *rows)
{
    json_t *j = bench_json_head(o), *list = json_array();
    int failed = 0;
    for (int i = 0; i < rows->n && !failed; i++)
        failed = json_array_append_new(list, row_json(&rows->row[i]));
    if (o->raw)
        failed |= json_object_update_new(j, sums_json(o, rows));
    failed |= json_object_update_new(
        j, json_pack("{s:s, s:o}", "buffers", o->warm ? "warm" : "cold", "rows", list));
    return failed ? json_decref(j), NULL : j;
}

/* ---- the table ---- */

static void print_shapes(const adj_node *n)
{
    printf("%s %s", n->op->name, adj_dtype_name(n->type.dtype));
    adj_show_attrs(n, stdout);
    for (int i = 0; i < n->n_in; i++)
        printf("%s%s", i > 0 ? ", " : "  ", adj_shape_text(n->in[i]->type.shape).s);
    printf(" -> %s", adj_shape_text(n->type.shape).s);
}

static void print_row(const bench_row *r)
{
    char name[112], planned[48] = "";
    snprintf(name, sizeof name, "%s %s", r->backend, r->impl);
    if (r->time.n == 0) {
        say("  %-44s %s", name, r->why);
        return;
    }
    if (r->planned > 0 && r->planned < r->count)
        snprintf(planned, sizeof planned, "  planned %d times", r->planned);
    else if (r->planned > 0)
        snprintf(planned, sizeof planned, "  planned");
    printf("  %-44s %10.2f %10.2f %10.2f %9.4g %9.4g %7d  %s%s%s\n", name, 1e6 * r->time.median,
           1e6 * r->time.min, 1e6 * r->estimate, 1e-9 * r->flop / r->time.median,
           1e-9 * (double)r->bytes / r->time.median, r->time.n, r->layouts, planned,
           r->fastest ? "  fastest" : "");
}

static const char *buffers(const bench_opts *o)
{
    return o->warm ? "operands in the caches (warm)" : "operands out of the caches (cold)";
}

static void print_rows(const bench_opts *o, const bench_rows *rows)
{
    printf("%lld threads, %s\n", (long long)o->threads, buffers(o));
    printf("  %-44s %10s %10s %10s %9s %9s %7s  layouts\n", "", "us", "minimum", "estimate",
           "GFLOP/s", "GB/s", "runs");
    for (int i = 0; i < rows->n; i++) {
        const bench_row *r = &rows->row[i];
        if (i == 0 || r[-1].node != r->node) {
            print_shapes(r->node);
            printf(r->count > 1 ? "  (%d times)\n" : "\n", r->count);
        }
        print_row(r);
    }
    if (o->raw)
        json_print(sums_json(o, rows));
}

int bench_rows_write(const bench_opts *o, const bench_rows *rows)
{
    int measured = 0;
    for (int i = 0; i < rows->n; i++)
        measured += rows->row[i].time.n > 0;
    if (measured == 0 && o->impl != NULL)
        return complain(EXIT_FAILED,
                        "--impl: no candidate's name contains \"%s\" (--all lists the candidates)",
                        o->impl);
    if (measured == 0)
        return complain(EXIT_FAILED, "no backend supports this op%s%s", rows->n > 0 ? ": " : "",
                        rows->n > 0 ? rows->row[0].why : "");
    if (!is_stdout(o->json))
        print_rows(o, rows);
    return json_report(o->json, rows_json(o, rows));
}
