/* options.c - see compare.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "compare.h"

static const remark examples[] = {
    {"adjoint compare --model resnet8 --configs naive:f64,onednn,onednn:bf16:mixed",
     "f32 and mixed precision against f64, with gradients and updates."},
    {"adjoint compare --op conv2d --in 2,36,36,24 --dtype bf16 --exact",
     "One op on integer data, compared bit for bit."},
    {"adjoint compare --model resnet8 --infer --configs naive:f64,onednn:mixed:f16",
     "The graph of predict: no gradients, batch norms folded."},
    {"adjoint compare --model lenet5 --configs naive:f64,emitted",
     "The C that adjoint emit writes, function by function."},
    {"adjoint compare --guard --json report.json", "Reports crashes and hangs as rows."},
    {NULL, NULL}};
static const remark statuses[] = {
    {"2", "inconclusive: impl= of a configuration matches no implementation of any node"},
    {NULL, NULL}};

static int read_options(compare_opts *o, int argc, char **argv)
{
    const option options[] = {
        {"--infer", "", "the model's inference with folded batch norms, as in predict",
         .flag = &o->graph.infer, .excludes = "--op"},
        {"--configs", "A,B,...",
         "configurations such as onednn:bf16:threads=1, the reference first; default: "
         "naive:f64,naive,onednn; separate by ; if one contains a comma; " EMITTED_HELP,
         .text = &o->configs},
        {"--also-batch", "N",
         "second batch size, for each distinct node alone; 0: off; default: 17",
         .integer = &o->also_batch, .range = {0, 4096}, .excludes = "--op"},
        {"--size", "S", "image size, N or HxW; default: the model's", .text = &o->graph.size,
         .excludes = "--op"},
        {"--seed", "N", "seed of the random values; default: 1", .integer = &o->seed,
         .range = {0, 1e15}},
        {"--runs", "N", "timed runs, fewer for slow graphs; default: 5", .integer = &o->runs,
         .range = {1, 1000}},
        {"--threads", "N", THREADS_HELP, .integer = &o->threads, .range = {1, 1024}},
        {"--exact", "", "integer data; requires equality where sums are exact", .flag = &o->exact},
        {"--guard", "", "runs each kernel in its own process and reports crashes and hangs",
         .flag = &o->guard},
        {"--timeout", "SECONDS",
         "time limit per process of --guard; default: per kernel, 60 or 1000 times its estimate",
         .real = &o->seconds, .range = {0.1, 1e4}},
        {"--shrink", "SECONDS", "time limit for shrinking a failing case; 0: off; default: 20",
         .real = &o->shrink, .range = {0, 1e5}},
        {"--precision", "", "",
         .instead = "set it per configuration: --configs naive:f64,onednn:mixed:bf16"},
        {"--all", "", "one line per node instead of per op", .flag = &o->all},
        {"--json", "FILE", JSON_HELP, .text = &o->json, .bare = "-"},
        {"--junit", "FILE", "writes JUnit XML for CI; - is standard output", .text = &o->junit},
        {0},
    };
    option graph[COMPARED_OPTIONS + 1];
    compared_options(&o->graph, 1, graph);
    const usage u = {.command = "compare",
                     .summary = "Compares backends, element types, layouts and threads node by "
                                "node. Default: --model lenet.",
                     .options = graph,
                     .more = options,
                     .statuses = statuses,
                     .variables = PLAN_VARIABLES,
                     .examples = examples};
    return parse_options(&u, argc, argv);
}

/* Splits "a,b,c", or "a;b,with=commas;c", in place. */
static int split(char *text, const char *list[MAX_LISTED])
{
    char separator = strchr(text, ';') != NULL ? ';' : ',';
    int n = 0;
    for (char *part = text; part != NULL && n < MAX_LISTED; n++) {
        char *end = strchr(part, separator);
        if (end != NULL)
            *end = '\0';
        list[n] = part;
        part = end != NULL ? end + 1 : NULL;
    }
    return n;
}

static int read_configs(compare_opts *o)
{
    adj_error error;
    adj_compare_config config;
    if (o->configs == NULL)
        return CONTINUE;
    o->config_text = or_exit(strdup(o->configs));
    checked_backends_open(&o->backends, o->configs);
    o->n_config = split(o->config_text, o->config);
    if (o->n_config == 1)
        return complain(EXIT_USAGE,
                        "--configs: expected at least two configurations (got only \"%s\")",
                        o->config[0]);
    for (int i = 0; i < o->n_config; i++) {
        const adj_backend *const *backends = i > 0 ? checked_backends_list(&o->backends) : NULL;
        if (adj_compare_config_parse(o->config[i], backends, &config, &error) != ADJ_OK)
            return complain(EXIT_USAGE, "--configs: %s", error.message);
        if (i == 0 && config.isa[0] != '\0')
            return complain(EXIT_USAGE,
                            "--configs: isa= is not possible in the first configuration, the "
                            "reference (got \"%s\")",
                            o->config[0]);
        if (backends != NULL && (o->guard || config.isa[0] != '\0'))
            return complain(EXIT_USAGE,
                            "--configs: emitted, whose functions run in processes of their own, "
                            "excludes --guard and isa= (got \"%s\")",
                            o->configs);
    }
    return CONTINUE;
}

int compare_parse(compare_opts *o, int argc, char **argv)
{
    *o = (compare_opts){.graph = {.batch = 2, .sets = 1, .neighbors = 8},
                        .shrink = 20,
                        .seed = 1,
                        .also_batch = 17,
                        .runs = 5};
    int status = read_options(o, argc, argv);
    if (status != CONTINUE)
        return status;
    if (o->graph.optimizer != NULL && o->graph.infer)
        return complain(EXIT_USAGE, "--optimizer requires --model without --infer");
    const char *stray = o->graph.op.op == NULL ? op_args_given(&o->graph.op, "") : NULL;
    if (stray != NULL)
        return complain(EXIT_USAGE, "%s requires --op%s", stray,
                        strcmp(stray, "--dtype") == 0 || strcmp(stray, "--attr") == 0
                            ? "; for a model, set it in --configs, as in onednn:bf16:nchw"
                            : "");
    if (o->seconds > 0 && !o->guard && (o->configs == NULL || strstr(o->configs, "isa=") == NULL))
        return complain(EXIT_USAGE, "--timeout requires --guard, or isa= in --configs");
    if (o->graph.model == NULL && o->graph.op.op == NULL)
        o->graph.model = "lenet";
    return read_configs(o);
}

void compare_close(compare_opts *o)
{
    free(o->config_text);
    checked_backends_close(&o->backends);
}

/* ---- the line ---- */

void compare_line(const compare_opts *o, const compared_opts *described, const char *configs,
                  char line[LINE])
{
    repeat_command(line, LINE, "compare");
    (void)compared_repeat(described, line, LINE);
    if (described->model != NULL)
        repeat_number(line, LINE, "--also-batch", (double)o->also_batch, 17);
    repeat_option(line, LINE, "--configs", configs != NULL ? configs : o->configs);
    repeat_number(line, LINE, "--seed", (double)o->seed, -1);
    repeat_number(line, LINE, "--runs", (double)o->runs, 5);
    repeat_number(line, LINE, "--threads", (double)o->threads, 0);
    repeat_option(line, LINE, "--exact", o->exact ? "" : NULL);
    repeat_option(line, LINE, "--guard", o->guard ? "" : NULL);
    if (o->guard || (configs != NULL ? strstr(configs, "isa=") : o->configs) != NULL)
        repeat_number(line, LINE, "--timeout", o->seconds, 0);
}

void compare_pair(const char *a, const char *b, char *text, size_t size)
{
    int comma = strchr(a, ',') != NULL || strchr(b, ',') != NULL;
    snprintf(text, size, "%s%c%s", a, comma ? ';' : ',', b);
}
