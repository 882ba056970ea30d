/* options.c - the options of adjoint bench. */
#include <omp.h>
#include <string.h>

#include "bench.h"

static int read_options(bench_opts *o, int argc, char **argv)
{
    const option others[] = {
        {"--model", "NAME", "whole steps of it; one of adjoint models", OPTION_TEXT, &o->model, 0,
         0},
        {"--batch", "N", "images in a step; default: 64", OPTION_INTEGER, &o->batch, 1, 65536},
        {"--threads", "N", "default: OpenMP's", OPTION_INTEGER, &o->threads, 1, 1024},
        {"--infer", "", "the evaluation graph instead of a training step", OPTION_FLAG, &o->infer,
         0, 0},
        {"--tune", "", "the plan times candidates", OPTION_FLAG, &o->tune, 0, 0},
        {"--tune-file", "FILE", "keeps what --tune finds; default: ADJOINT_TUNE's", OPTION_TEXT,
         &o->tune_file, 0, 0},
        {"--tune-seconds", "S", "about as long may it take; default: 5", OPTION_REAL,
         &o->tune_seconds, 0.001, 1e5},
        {"--math", "MODE", "exact (default) or fast", OPTION_TEXT, &o->math, 0, 0},
        {"--backend", "NAME", "as the executor takes it; with --all: only these, A,B", OPTION_TEXT,
         &o->backend, 0, 0},
        {"--without", "NAME", "with --all: not this backend", OPTION_TEXT, &o->without, 0, 0},
        {"--impl", "WORD", "implementations whose name contains it", OPTION_TEXT, &o->impl, 0, 0},
        {"--seconds", "S", "of each measurement; default: 3, of one kernel 0.5", OPTION_REAL,
         &o->seconds, 0, 3600},
        {"--recompute", "", "cheap activations are computed again, not kept: less memory",
         OPTION_FLAG, &o->recompute, 0, 0},
        {"--profile", "", "a table of the plan's steps, and of ops", OPTION_FLAG, &o->profile, 0,
         0},
        {"--trace", "FILE", "one step for a trace viewer (Chrome's JSON)", OPTION_TEXT, &o->trace,
         0, 0},
        {"--raw", "", "of the model: each convolution's fastest candidate alone, and their sum",
         OPTION_FLAG, &o->raw, 0, 0},
        {"--all", "", "every candidate of every backend", OPTION_FLAG, &o->all, 0, 0},
        {"--warm", "", "one set of buffers, again and again (--raw: default)", OPTION_FLAG,
         &o->warm, 0, 0},
        {"--cold", "", "sets of buffers in turn, beyond the L3 cache (--op: default)", OPTION_FLAG,
         &o->cold, 0, 0},
        {"--json", "", "one JSON object instead of text", OPTION_FLAG, &o->json, 0, 0},
    };
    enum { OTHERS = sizeof others / sizeof others[0] };
    option options[OTHERS + OP_OPTIONS];
    memcpy(options, others, sizeof others);
    op_args_options(&o->op, options + OTHERS);
    const usage u = {"bench", "Times whole steps of a model, or the kernels of one op.",
                     OTHERS + OP_OPTIONS, options};
    return parse_options(&u, argc, argv);
}

static int read_math(bench_opts *o)
{
    if (o->math != NULL && strcmp(o->math, "exact") != 0 && strcmp(o->math, "fast") != 0)
        return complain("bench", EXIT_USAGE, "--math: got \"%s\", expected exact or fast", o->math);
    o->math_mode = o->math != NULL && strcmp(o->math, "fast") == 0 ? ADJ_MATH_FAST : ADJ_MATH_EXACT;
    return CONTINUE;
}

/* What only one of the three ways of measuring understands. */
static int check_goes_with(const bench_opts *o)
{
    int step = o->op.op == NULL && !o->raw;
    const struct {
        int given, fits;
        const char *sentence;
    } rules[] = {
        {o->infer, o->op.op == NULL, "--infer goes with --model"},
        {o->raw, o->op.op == NULL, "--raw goes with --model"},
        {o->profile, step, "--profile goes with --model"},
        {o->trace != NULL, step, "--trace goes with --model"},
        {o->tune, step, "--tune goes with --model"},
        {o->recompute, step && !o->infer, "--recompute goes with a training step of --model"},
        {o->tune_file != NULL, o->tune != 0, "--tune-file goes with --tune"},
        {o->tune_seconds > 0, o->tune != 0, "--tune-seconds goes with --tune"},
        {o->all, !step, "--all goes with --op or --raw"},
        {o->warm || o->cold, !step, "--warm and --cold go with --op or --raw"},
        {o->warm && o->cold, 0, "--warm and --cold exclude each other"},
        {o->without != NULL, o->all || o->raw, "--without goes with --all or --raw"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].given && !rules[i].fits)
            return complain("bench", EXIT_USAGE, "%s", rules[i].sentence);
    return CONTINUE;
}

/* Steps in a half type are those of the f32 model in mixed precision; kernels alone are of the type
 * itself. */
static void choose_precision(bench_opts *o)
{
    int mixed = o->op.op == NULL && !o->raw && (o->dtype == ADJ_BF16 || o->dtype == ADJ_F16);
    adj_precision half = o->dtype == ADJ_F16 ? ADJ_PRECISION_F16 : ADJ_PRECISION_BF16;
    o->precision = mixed ? half : ADJ_PRECISION_AS_BUILT;
    o->model_dtype = mixed ? ADJ_F32 : o->dtype;
}

static int check(bench_opts *o)
{
    if ((o->model == NULL) == (o->op.op == NULL))
        return complain("bench", EXIT_USAGE, "one of --model NAME and --op NAME is needed");
    if (o->op.dtype != NULL && !dtype_from_name(o->op.dtype, &o->dtype))
        return complain("bench", EXIT_USAGE, "--dtype: got \"%s\", expected f32, bf16, f16 or f64",
                        o->op.dtype);
    choose_precision(o);
    int status = read_math(o);
    return status == CONTINUE ? check_goes_with(o) : status;
}

int bench_parse(bench_opts *o, int argc, char **argv)
{
    *o = (bench_opts){.batch = 64, .seconds = -1};
    int status = read_options(o, argc, argv);
    if (status == CONTINUE)
        status = check(o);
    if (o->threads == 0)
        o->threads = omp_get_max_threads();
    if (o->seconds < 0)
        o->seconds = o->op.op != NULL ? 0.5 : o->raw ? 0.1 : 3;
    return status;
}
