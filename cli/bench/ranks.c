/* ranks.c - a training step by several ranks: --batch is per rank. The same run also measures one
 * rank alone, and all ranks at once without communication: they share memory, caches and clock, and
 * no exchange of gradients can recover what that costs. */
#include <math.h>
#include <stdlib.h>

#include "cli/command.h"
#include "base/ranks_meter.h"
#include "cli/standard.h"
#include "bench.h"

enum { TURNS = 3, MIN_RUNS = 3 };

typedef struct {
    const bench_opts *o;
    const adj_ranks *ranks;
    spread alone, together;          /* times of rank 0 */
    double apart;                    /* seconds: the slowest rank's median, all at work */
    double waited, traveled;         /* seconds of a step */
    double latency, bits_per_second; /* latency and bandwidth between ranks 0 and 1 */
    adj_exec_info plan, alone_plan;
} rank_times;

static double per_second(const rank_times *r, const spread *t, int ranks)
{
    return (double)ranks * (double)r->o->batch / t->median;
}

/* Returns the fraction of the reductions' time that overlaps with computation. */
static double hidden(const rank_times *r)
{
    const double part = r->traveled > 0 ? 1 - r->waited / r->traveled : 1;
    return part > 0 ? part : 0;
}

/* The nets, and the times of each repetition; alone_time: rank 0 only. */
typedef struct {
    bench_opts alone_opts, together_opts;
    bench_net alone, together;
    spread alone_time[TURNS], apart_time[TURNS], together_time[TURNS];
} turns;

static int open_nets(turns *t, const rank_times *r)
{
    t->alone_opts = t->together_opts = *r->o;
    t->alone_opts.seconds /= TURNS;
    t->together_opts.shared = r->ranks;
    /* rank 0 communicates even alone, as the others wait for it */
    t->alone_opts.backends = t->together_opts.backends = r->ranks->backends;
    if (bench_net_open(&t->alone, &t->alone_opts) != ADJ_OK)
        return complain_of(&t->alone.m.error);
    if (bench_net_open(&t->together, &t->together_opts) != ADJ_OK)
        return complain_of(&t->together.m.error);
    return EXIT_OK;
}

/* Times rank 0's step while the others are idle, and sets the number of runs for all. */
static int time_alone(turns *t, const adj_ranks *k, int turn, int *runs)
{
    bench_step_time time = {0};
    adj_error error = {0};
    t->alone_opts.runs = 0;
    if (k->rank == 0) {
        if (bench_net_time(&t->alone, &t->alone_opts, &time, NULL) != ADJ_OK)
            return complain_of(&t->alone.m.error);
        t->alone_time[turn] = time.time;
        *runs = (int)fmin(1e6, fmax(MIN_RUNS, t->alone_opts.seconds / time.time.median));
    }
    return k->broadcast(k->group, runs, sizeof *runs, &error) != ADJ_OK ? complain_of(&error)
                                                                        : EXIT_OK;
}

/* Times the same step on all ranks at once, without communication. Returns when all have finished.
 */
static int time_apart(turns *t, const adj_ranks *k, int turn, int runs)
{
    bench_step_time time = {0};
    adj_error error = {0};
    t->alone_opts.runs = runs;
    if (bench_net_time(&t->alone, &t->alone_opts, &time, NULL) != ADJ_OK)
        return complain_of(&t->alone.m.error);
    double *all = allocate(k->size, sizeof *all);
    const adj_status status = k->all_gather(k->group, &time.time.median, sizeof *all, all, &error);
    for (int i = 0; i < k->size; i++)
        t->apart_time[turn].median = fmax(t->apart_time[turn].median, all[i]);
    free(all);
    return status == ADJ_OK ? EXIT_OK : complain_of(&error);
}

/* Runs the three measurements once; *runs: number of steps with communication. */
static int take_turn(turns *t, rank_times *r, int turn, int *runs)
{
    const adj_ranks *k = r->ranks;
    bench_step_time time = {0};
    int now = 0, status = time_alone(t, k, turn, &now);
    if (status == EXIT_OK)
        status = time_apart(t, k, turn, now);
    if (status != EXIT_OK)
        return status;
    t->together_opts.runs = now;
    const double waited = k->meter->waited(k->group), traveled = k->meter->traveled(k->group);
    if (bench_net_time(&t->together, &t->together_opts, &time, NULL) != ADJ_OK)
        return complain_of(&t->together.m.error);
    t->together_time[turn] = time.time;
    r->waited += k->meter->waited(k->group) - waited;
    r->traveled += k->meter->traveled(k->group) - traveled;
    *runs += now + BENCH_WARM_UP;
    return EXIT_OK;
}

static int by_median(const void *a, const void *b)
{
    const double x = ((const spread *)a)->median, y = ((const spread *)b)->median;
    return (x > y) - (x < y);
}

/* Returns the median of the repetitions. */
static spread middle(spread list[TURNS])
{
    qsort(list, TURNS, sizeof *list, by_median);
    return list[TURNS / 2];
}

static int measure(turns *t, rank_times *r)
{
    int runs = 0, status = EXIT_OK;
    for (int turn = 0; turn < TURNS && status == EXIT_OK; turn++)
        status = take_turn(t, r, turn, &runs);
    if (status != EXIT_OK)
        return status;
    r->alone = middle(t->alone_time);
    r->apart = middle(t->apart_time).median;
    r->together = middle(t->together_time);
    r->waited /= runs;
    r->traveled /= runs;
    r->plan = adj_exec_stats(t->together.exec);
    r->alone_plan = adj_exec_stats(t->alone.exec);
    return EXIT_OK;
}

/* Profiles the steps of rank 0's plan while all ranks run, as often as in the last repetition. */
static int profile(turns *t, bench_profile *p)
{
    const bench_opts *o = &t->together_opts;
    if (!o->profile)
        return EXIT_OK;
    return bench_profile_run(p, &t->together, o) == ADJ_OK ? EXIT_OK
                                                           : complain_of(&t->together.m.error);
}

static json_t *times_json(const rank_times *r)
{
    const bench_opts *o = r->o;
    const char *precision =
        o->precision_word != NULL ? o->precision_word : adj_dtype_name(o->dtype);
    json_t *j = json_pack("{s:s, s:I, s:i, s:i, s:s, s:i, s:f, s:f, s:f}", "model", o->model,
                          "batch", (json_int_t)o->batch, "threads", (int)o->threads, "ranks",
                          r->ranks->size, "precision", precision, "runs", r->together.n,
                          "median_ms", 1e3 * r->together.median, "min_ms", 1e3 * r->together.min,
                          "alone_ms", 1e3 * r->alone.median);
    const int failed = json_object_update_new(
        j,
        json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I}", "images_per_s",
                  per_second(r, &r->together, r->ranks->size), "alone_images_per_s",
                  per_second(r, &r->alone, 1), "efficiency", r->alone.median / r->together.median,
                  "apart_ms", 1e3 * r->apart, "efficiency_apart", r->apart / r->together.median,
                  "waited_ms", 1e3 * r->waited, "traveled_ms", 1e3 * r->traveled, "hidden",
                  hidden(r), "latency", r->latency, "bits_per_s", r->bits_per_second, "arena_bytes",
                  (json_int_t)r->plan.arena_bytes, "alone_arena_bytes",
                  (json_int_t)r->alone_plan.arena_bytes));
    return failed ? json_decref(j), NULL : j;
}

int bench_ranks(const bench_opts *o, const adj_ranks *ranks)
{
    rank_times r = {.o = o, .ranks = ranks};
    turns t = {0};
    bench_profile p = {0};
    adj_error error = {0};
    int status = open_nets(&t, &r);
    if (status == EXIT_OK)
        status = measure(&t, &r);
    if (status == EXIT_OK &&
        ranks->meter->measure_link(ranks->group, &r.latency, &r.bits_per_second, &error) != ADJ_OK)
        status = complain_of(&error);
    if (status == EXIT_OK)
        status = profile(&t, &p);
    if (status == EXIT_OK && ranks->rank == 0)
        status = bench_write(o, &p, times_json(&r));
    bench_profile_free(&p);
    bench_net_close(&t.alone);
    bench_net_close(&t.together);
    return status;
}
