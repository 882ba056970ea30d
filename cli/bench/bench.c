/* bench.c - adjoint bench: how long whole steps of a model take, or the kernels of an op.
 *
 * Exit status: 0 measured, 1 failed, 3 wrong usage. */
#include <math.h>

#include "bench.h"
#include "cli/command.h"
#include "cli/output.h"

static void print_step(const bench_opts *o, const bench_net *n, const bench_step_time *t)
{
    adj_exec_info info = adj_exec_stats(n->exec);
    const spread *s = &t->time;
    say("%s, batch %lld, %s, %s, %lld threads", o->model, (long long)o->batch,
        adj_dtype_name(o->dtype), o->infer ? "inference" : "training", (long long)o->threads);
    printf("  median %.3f ms, minimum %.3f ms, quartiles %.3f and %.3f ms over %d steps\n",
           1e3 * s->median, 1e3 * s->min, 1e3 * s->q1, 1e3 * s->q3, s->n);
    printf("  %.0f images/s, %.1f GFLOP/s\n", (double)o->batch / s->median,
           1e-9 * n->flop / s->median);
    printf("  built and planned in %.0f ms: %d steps, %d reorders, %d on naive\n",
           1e3 * n->plan_seconds, info.steps, info.reorders, info.naive_steps);
    if (o->tune)
        printf("  tuned: %d candidates timed, %d steps from the file\n", info.timed, info.cached);
    printf("  arena %.2f MB (%.2f MB live at most), kept %.2f MB, peak resident %.1f MB\n",
           1e-6 * (double)info.arena_bytes, 1e-6 * (double)info.live_bytes,
           1e-6 * (double)info.storage_bytes, 1e-6 * (double)t->peak_rss);
    if (!isnan(t->loss))
        printf("  loss %.6g\n", t->loss);
}

static int failed(const bench_net *n)
{
    return complain("bench", n->usage ? EXIT_USAGE : EXIT_FAILED, "%s", n->message);
}

static int profile(const bench_opts *o, bench_net *n, bench_profile *p)
{
    if (!o->profile && o->trace == NULL)
        return EXIT_OK;
    if (bench_profile_run(p, n, o) != ADJ_OK)
        return failed(n);
    const output_file file = {"--trace", o->trace, OUTPUT_IN_PLACE};
    return write_output("bench", &file, bench_trace, p);
}

static int bench_steps(const bench_opts *o)
{
    bench_net n;
    bench_step_time t = {0};
    bench_profile p = {0};
    int status = EXIT_OK;
    if (bench_net_open(&n, o) != ADJ_OK || bench_net_time(&n, o, &t) != ADJ_OK)
        status = failed(&n);
    if (adj_exec_warning(n.exec)[0] != '\0')
        complain("bench", EXIT_OK, "%s", adj_exec_warning(n.exec));
    if (status == EXIT_OK && !o->json)
        print_step(o, &n, &t);
    if (status == EXIT_OK)
        status = profile(o, &n, &p);
    if (status == EXIT_OK && !o->json && o->profile)
        bench_profile_print(stdout, &p);
    if (status == EXIT_OK && o->json &&
        bench_json_step(stdout, o, &n, &t, o->profile ? &p : NULL) != 0)
        status = complain("bench", EXIT_FAILED, "the output cannot be written");
    bench_profile_free(&p);
    bench_net_close(&n);
    return status;
}

int command_bench(int argc, char **argv)
{
    bench_opts o;
    int status = bench_parse(&o, argc, argv);
    if (status == CONTINUE) {
        const output_file files[] = {{"--trace", o.trace, OUTPUT_IN_PLACE},
                                     {"--tune-file", o.tune_file, OUTPUT_REPLACED}};
        status = check_outputs("bench", sizeof files / sizeof files[0], files);
    }
    if (status != CONTINUE)
        return status;
    if (o.op.op != NULL)
        return bench_op(&o);
    return o.raw ? bench_raw(&o) : bench_steps(&o);
}
