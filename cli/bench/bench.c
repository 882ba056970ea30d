/* bench.c - adjoint bench: measures the time of whole steps of a model, or of the kernels of an op.
 * Exit status: 0 measured, 1 failed, 3 wrong usage. */
#include "bench.h"

#include "base/limits.h"
#include "cli/command.h"
#include "cli/json.h"
#include "cli/mpirun.h"
#include "cli/standard.h"

/* ---- options ---- */

static const remark examples[] = {
    {"adjoint bench --model resnet20 --batch 128 --profile", "Training steps, with a profile."},
    {"adjoint bench --model resnet20 --batch 128 --raw --tune",
     "The tuned plan's convolutions against the fastest kernels."},
    {"adjoint bench --model mobilenet_v1 --infer --precision bf16 --json",
     "Inference in mixed precision, as JSON."},
    {"mpirun -n 2 adjoint bench --model resnet20 --threads 1",
     "Two processes compared with one (build with ninja mpi first)."},
    {"adjoint bench --op conv2d --in 8,32,32,64 --filter 3,3,64,64 --all",
     "Every implementation of a convolution and its gradients."},
    {NULL, NULL}};

/* Parses the command's options and those of --op. */
static int parse_with_op(bench_opts *o, const option *options, int argc, char **argv)
{
    option op[OP_OPTIONS + 1] = {0};
    op_args_options(&o->op, op);
    const usage u = {
        .command = "bench",
        .summary = "Benchmarks a model's training or inference step, or the kernels of one op.",
        .options = options,
        .more = op,
        .variables = PLAN_VARIABLES,
        .examples = examples};
    return parse_options(&u, argc, argv);
}

static int read_options(bench_opts *o, int argc, char **argv)
{
    const option options[] = {
        {"--model", "NAME", "model whose steps to time, see adjoint models; or an ONNX file",
         .text = &o->model, .names = model_name_at},
        {"--batch", "N", "images per step (under mpirun: per rank); default: 64",
         .integer = &o->batch, .range = {1, 65536}, .needs = "--model"},
        {"--threads", "N", THREADS_HELP, .integer = &o->threads, .range = {1, 1024}},
        {"--infer", "", "times inference instead of training", .flag = &o->infer,
         .needs = "--model"},
        {"--tune", "", "tunes kernels first and stores the results in ADJOINT_TUNE's file",
         .flag = &o->tune, .needs = "--model"},
        {"--precision", "P", PRECISION_HELP, .text = &o->precision_word, .words = PRECISION_WORDS},
        {"--math", "MODE", MATH_HELP, .text = &o->math, .words = MATH_WORDS},
        {"--backend", "NAME", BACKEND_HELP "; with --all: a list A,B of backends",
         .text = &o->backend, .names = backend_name_at},
        {"--impl", "WORD", "only implementations whose name contains WORD", .text = &o->impl},
        {"--seconds", "S",
         "seconds per measurement; default: 3, per kernel 0.5; with --raw in total, 20",
         .real = &o->seconds, .range = {0, 3600}},
        {"--profile", "", "time per plan step and per op", .flag = &o->profile},
        {"--raw", "",
         "with --model: each convolution's planned and fastest kernel, timed alone, and the plan's "
         "regret (planned time / fastest time)",
         .flag = &o->raw, .needs = "--model"},
        {"--all", "", "all candidates of all backends", .flag = &o->all},
        {"--warm", "", "keeps operands in the caches (default: evicts them); for kernels",
         .flag = &o->warm},
        {"--json", "FILE", JSON_HELP, .text = &o->json, .bare = "-"},
        {0},
    };
    return parse_with_op(o, options, argc, argv);
}

/* Refuses options that the selected kind of measurement does not have. */
static int check_goes_with(const bench_opts *o)
{
    int step = o->op.op == NULL && !o->raw;
    const struct {
        int given, fits;
        const char *sentence;
    } rules[] = {
        {o->profile, step, "--profile requires --model"},
        {o->precision_word != NULL, o->op.op == NULL,
         "--precision requires --model; use --dtype with --op"},
        {o->precision != ADJ_PRECISION_AS_BUILT, o->dtype == ADJ_F32,
         "--precision and --dtype are mutually exclusive (mixed precision keeps f32 parameters)"},
        {o->all, !step, "--all requires --op or --raw"},
        {o->warm, !step, "--warm requires --op or --raw"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].given && !rules[i].fits)
            return complain(EXIT_USAGE, "%s", rules[i].sentence);
    return CONTINUE;
}

static int check_options(bench_opts *o)
{
    if ((o->model == NULL) == (o->op.op == NULL))
        return complain(EXIT_USAGE, "expected one of --model NAME and --op NAME");
    if (o->op.dtype != NULL && !dtype_from_name(o->op.dtype, &o->dtype))
        return complain(EXIT_USAGE, "--dtype: got \"%s\", expected f32, bf16, f16 or f64",
                        o->op.dtype);
    if (o->precision_word != NULL)
        o->precision = (adj_precision)word_index(PRECISION_WORDS, o->precision_word);
    o->math_mode = o->math != NULL ? (adj_math)word_index(MATH_WORDS, o->math) : ADJ_MATH_EXACT;
    const char *stray = o->op.op == NULL ? op_args_given(&o->op, "--dtype") : NULL;
    if (stray != NULL)
        return complain(EXIT_USAGE, "%s requires --op", stray);
    return check_goes_with(o);
}

static int parse(bench_opts *o, int argc, char **argv)
{
    *o = (bench_opts){.batch = 64, .seconds = -1};
    int status = read_options(o, argc, argv);
    if (status == CONTINUE)
        status = check_options(o);
    if (o->threads == 0)
        o->threads = mpirun_threads(adj_default_threads());
    if (o->seconds < 0)
        o->seconds = o->op.op != NULL ? 0.5 : o->raw ? 20 : 3;
    return status;
}

/* ---- results ---- */

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

int bench_write(const bench_opts *o, const bench_profile *p, json_t *j)
{
    if (!is_stdout(o->json)) {
        if (json_print(json_incref(j)) != 0)
            return json_decref(j), EXIT_FAILED;
        if (p->n > 0)
            bench_profile_print(p);
    }
    const int failed = p->n > 0 && json_object_set_new(j, "profile", bench_profile_json(p)) != 0;
    return json_report(o->json, failed ? json_decref(j), NULL : j);
}

/* ---- whole steps ---- */

static json_t *steps_json(const bench_opts *o, const bench_net *n, const bench_step_time *t)
{
    const adj_exec_info plan = adj_exec_stats(n->exec);
    const exec_details details = adj_exec_details(n->exec);
    const spread *s = &t->time;
    json_t *j = bench_json_head(o);
    int failed = json_object_update_new(
        j,
        json_pack("{s:I, s:b, s:b, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "batch",
                  (json_int_t)o->batch, "infer", (int)o->infer, "tune", (int)o->tune, "runs", s->n,
                  "median_ms", 1e3 * s->median, "min_ms", 1e3 * s->min, "q1_ms", 1e3 * s->q1,
                  "q3_ms", 1e3 * s->q3, "spread", (s->q3 - s->q1) / s->median, "images_per_s",
                  (double)o->batch / s->median, "gflops", 1e-9 * n->flop / s->median));
    failed |= json_object_update_new(
        j, json_pack("{s:f, s:I, s:I, s:I, s:I, s:I, s:i, s:i, s:i, s:i, s:i, s:i, s:o, s:I, s:o}",
                     "plan_ms", 1e3 * n->plan_seconds, "arena_bytes", (json_int_t)plan.arena_bytes,
                     "live_bytes", (json_int_t)details.live_bytes, "storage_bytes",
                     (json_int_t)plan.storage_bytes, "read_bytes", (json_int_t)details.read_bytes,
                     "written_bytes", (json_int_t)details.written_bytes, "steps", plan.steps,
                     "recomputed", details.recomputed, "timed", details.timed, "cached",
                     details.cached, "reorders", details.reorders, "naive_steps", plan.naive_steps,
                     "warning", json_text(adj_exec_warning(n->exec)), "peak_rss_bytes",
                     (json_int_t)t->peak_rss, "loss", json_number(t->loss)));
    return failed ? json_decref(j), NULL : j;
}

static int bench_steps(const bench_opts *o)
{
    bench_net n;
    bench_step_time t = {0};
    bench_profile p = {0};
    int status = EXIT_OK;
    if (bench_net_open(&n, o) != ADJ_OK || bench_net_time(&n, o, &t, NULL) != ADJ_OK)
        status = complain_of(&n.m.error);
    if (adj_exec_warning(n.exec)[0] != '\0')
        complain(EXIT_OK, "%s", adj_exec_warning(n.exec));
    json_t *j = status == EXIT_OK ? steps_json(o, &n, &t) : NULL;
    if (status == EXIT_OK && o->profile && bench_profile_run(&p, &n, o) != ADJ_OK)
        status = complain_of(&n.m.error);
    if (status == EXIT_OK)
        status = bench_write(o, &p, json_incref(j));
    json_decref(j);
    bench_profile_free(&p);
    bench_net_close(&n);
    return status;
}

/* Measures with all ranks that mpirun has started. */
static int bench_together(const bench_opts *o)
{
    mpirun_group g;
    int status = mpirun_join(0, &g);
    if (status == CONTINUE && ranks_size(g.ranks) == 1)
        status = bench_steps(o);
    else if (status == CONTINUE && o->infer)
        status =
            complain(EXIT_USAGE, "--infer runs in one process (got %d ranks)", ranks_size(g.ranks));
    else if (status == CONTINUE)
        status = bench_ranks(o, g.ranks);
    return mpirun_leave(&g, status, 0);
}

int command_bench(int argc, char **argv)
{
    bench_opts o;
    int status = parse(&o, argc, argv);
    if (status == CONTINUE && mpirun_rank_here() == 0) { /* rank 0 alone writes the results */
        const output_file file = {"--json", o.json, OUTPUT_REPORT};
        status = check_outputs(1, &file);
    }
    if (status != CONTINUE)
        return status;
    if (o.op.op != NULL)
        return bench_op(&o);
    return o.raw ? bench_raw(&o) : bench_together(&o);
}
