/* scale.c - bench --scale: one rank's step is measured, and what it would be on more predicted. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/json.h"
#include "cli/output.h"
#include "exec/clock.h"
#include "prediction.h"
#include "profile.h"

enum { MAX_SCALES = 32 };

/* ---- what is measured ---- */

typedef struct {
    const bench_opts *o;
    scale_link link;
    scale_step step;
    scale_bucket *bucket;
    int n, ranks[MAX_SCALES];
    double params; /* bytes that are reduced */
} prediction;

/* Bytes a second, of vectors that fit into a cache: a bucket does. */
static double measure_adds(void)
{
    enum { N = 1 << 17, TURNS = 20 };
    float *sum = calloc(N, sizeof *sum), *x = calloc(N, sizeof *x);
    double min = 1;
    for (int turn = 0; sum != NULL && x != NULL && turn < TURNS; turn++) {
        const double start = seconds_now();
        for (int i = 0; i < N; i++)
            sum[i] += x[i];
        __asm__ volatile("" : : "r"(sum) : "memory"); /* it is needed */
        min = fmin(min, seconds_now() - start);
    }
    free(sum);
    free(x);
    return N * sizeof(float) / min;
}

/* The plan's steps in their order: a bucket is complete where its reduction stands, which takes no
 * time by itself; what follows the last one is updates. */
static int take_profile(prediction *p, const bench_profile *profile)
{
    double at = 0;
    p->bucket = calloc((size_t)profile->n + 1, sizeof *p->bucket);
    if (p->bucket == NULL)
        return 0;
    for (int i = 0; i < profile->n; i++) {
        const adj_step_info *s = &profile->row[i];
        if (strcmp(s->op, "all_reduce") != 0) {
            at += s->seconds;
            continue;
        }
        const double bytes = (double)s->bytes / 2; /* read and written */
        p->bucket[p->step.n++] = (scale_bucket){at, bytes};
        p->params += bytes;
        p->step.backward = at;
    }
    p->step.bucket = p->bucket;
    p->step.updates = at - p->step.backward;
    return 1;
}

static int measure(prediction *p)
{
    const adj_data_parallel_opts shared = {.processes = 2};
    bench_opts o = *p->o;
    bench_net n;
    bench_profile profile = {0};
    o.shared = &shared;
    adj_status status = bench_net_open(&n, &o);
    if (status == ADJ_OK)
        status = bench_profile_run(&profile, &n, &o);
    int failed = EXIT_OK;
    if (status != ADJ_OK)
        failed = complain("bench", n.usage ? EXIT_USAGE : EXIT_FAILED, "%s", n.m.error.message);
    else if (!take_profile(p, &profile))
        failed = complain("bench", EXIT_FAILED, "out of memory");
    bench_profile_free(&profile);
    bench_net_close(&n);
    p->link.adds = measure_adds();
    return failed;
}

/* ---- what is asked for ---- */

static int read_ranks(prediction *p)
{
    const char *at = p->o->scale;
    char *end = NULL;
    while (p->n < MAX_SCALES) {
        const long ranks = strtol(at, &end, 10);
        if (end == at || ranks < 1 || ranks > 1 << 24 || (*end != ',' && *end != '\0'))
            break;
        p->ranks[p->n++] = (int)ranks;
        if (*end == '\0')
            return CONTINUE;
        at = end + 1;
    }
    return complain("bench", EXIT_USAGE,
                    "--scale: expected up to %d numbers of ranks, 2,8,64 (got %s)", MAX_SCALES,
                    p->o->scale);
}

static int read_link(prediction *p)
{
    char *end = NULL;
    const char *text = p->o->link;
    p->link.bits_per_second = strtod(text, &end);
    if (end != text && *end == ',') {
        text = end + 1;
        p->link.latency = strtod(text, &end);
    }
    if (end != text && *end == '\0' && text != p->o->link && p->link.bits_per_second >= 1 &&
        p->link.bits_per_second <= 1e15 && p->link.latency >= 0 && p->link.latency <= 10)
        return CONTINUE;
    return complain("bench", EXIT_USAGE,
                    "--link: expected bits a second and seconds of latency, 10e9,5e-6 (got %s)",
                    p->o->link);
}

/* ---- the report ---- */

static void print(const prediction *p)
{
    const double alone = p->step.backward + p->step.updates;
    say("%s, batch %lld a rank, %lld threads: a step by itself %.3f ms, %.2f MB in %d buckets",
        p->o->model, (long long)p->o->batch, (long long)p->o->threads, 1e3 * alone,
        1e-6 * p->params, p->step.n);
    printf("%8s %12s %12s %12s %12s %14s\n", "ranks", "step ms", "exposed ms", "efficiency",
           "ring, ms", "images/s");
    for (int i = 0; i < p->n; i++) {
        double exposed;
        const double step = scale_predict(&p->step, &p->link, p->ranks[i], &exposed);
        printf("%8d %12.3f %12.3f %12.3f %12.3f %14.0f\n", p->ranks[i], 1e3 * step, 1e3 * exposed,
               alone / step, 1e3 * scale_ring(&p->link, p->ranks[i], p->params),
               (double)p->ranks[i] * (double)p->o->batch / step);
    }
}

static int write_json(FILE *f, const void *source)
{
    const prediction *p = source;
    const double alone = p->step.backward + p->step.updates;
    json_t *list = json_array();
    for (int i = 0; i < p->n; i++) {
        double exposed;
        const double step = scale_predict(&p->step, &p->link, p->ranks[i], &exposed);
        json_array_append_new(
            list, json_pack("{s:i, s:f, s:f, s:f, s:f, s:f}", "ranks", p->ranks[i], "step_ms",
                            1e3 * step, "exposed_ms", 1e3 * exposed, "efficiency", alone / step,
                            "ring_ms", 1e3 * scale_ring(&p->link, p->ranks[i], p->params),
                            "images_per_s", (double)p->ranks[i] * (double)p->o->batch / step));
    }
    json_t *j = json_pack(
        "{s:s, s:I, s:i, s:f, s:i, s:f, s:f, s:f, s:f, s:o}", "model", p->o->model, "batch",
        (json_int_t)p->o->batch, "threads", (int)p->o->threads, "alone_ms", 1e3 * alone, "buckets",
        p->step.n, "reduced_bytes", p->params, "bits_per_s", p->link.bits_per_second, "latency",
        p->link.latency, "adds_bytes_per_s", p->link.adds, "predicted", list);
    return json_write(f, j, JSON_PAGE, list == NULL);
}

int bench_scale(const bench_opts *o)
{
    prediction p = {.o = o};
    int status = read_ranks(&p);
    if (status == CONTINUE)
        status = read_link(&p);
    if (status == CONTINUE)
        status = measure(&p);
    if (status == EXIT_OK && bench_prints(o))
        print(&p);
    if (status == EXIT_OK)
        status =
            write_output("bench", &(output_file){"--json", o->json, OUTPUT_REPORT}, write_json, &p);
    free(p.bucket);
    return status;
}
