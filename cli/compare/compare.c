/* compare.c - adjoint compare: a model's training step under several configurations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "exec/internal.h"
#include "compare.h"
#include "cli/guard.h"
#include "cli/standard.h"

/* ---- options ---- */

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

static int parse(compare_opts *o, int argc, char **argv)
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

/* ---- the comparison ---- */

static int has_failed(const compare_run *run)
{
    return run->comparison != NULL &&
           run->comparison->n_failed + run->comparison->n_whole_failed > 0;
}

/* True if configuration k names an implementation that no node has, so that nothing is compared. */
static int is_unmatched(const adj_comparison *c, int k)
{
    for (int i = 0; i < c->n_row; i++)
        if (adj_comparison_row_at(c, i)->config == k && !adj_comparison_row_at(c, i)->other_impl)
            return 0;
    return adj_comparison_config_at(c, k)->impl[0] != '\0';
}

static int says_unmatched(const adj_comparison *c)
{
    int n = 0;
    for (int k = 1; k < c->n_config; k++)
        if (is_unmatched(c, k)) {
            const adj_compare_config *config = adj_comparison_config_at(c, k);
            complain(EXIT_INCONCLUSIVE,
                     "%s: no node has an implementation whose name contains \"%s\"", config->name,
                     config->impl);
            n++;
        }
    return n > 0;
}

/* also: the comparison of --also-batch, if it has one. The table shows both; other formats show the
 * failed one, or the first. */
static int write_all(const compare_opts *o, const output_file files[2], compare_run *run,
                     compare_run *also)
{
    const int taken = is_stdout(o->json) || is_stdout(o->junit);
    const compare_run *failed = !has_failed(run) && has_failed(also) ? also : run;
    run->all = also->all = o->all != 0;
    run->also = has_failed(run) && has_failed(also) ? also : NULL;
    if (!taken)
        write_table(stdout, run);
    if (!taken && has_failed(also))
        write_table(stdout, also);
    else if (!taken && also->comparison != NULL)
        printf("%s, each kind of node alone: %d comparisons, 0 failed\n", also->title,
               also->comparison->n_row);
    int status = write_output(&files[0], write_json, failed);
    if (status == EXIT_OK)
        status = write_output(&files[1], write_junit, failed);
    if (status == EXIT_OK && has_failed(failed))
        return EXIT_FAILED;
    return status == EXIT_OK && says_unmatched(run->comparison) ? EXIT_INCONCLUSIVE : status;
}

static void describe(const compare_opts *o, const compared *g, char *title, size_t size)
{
    int n = o->graph.model != NULL
                ? snprintf(title, size, "%s%s, batch %lld", o->graph.model,
                           o->graph.infer ? ", inference" : "", (long long)o->graph.batch)
                : snprintf(title, size, "%s", o->graph.op.op);
    if (g->n_variant > 0)
        n += snprintf(title + n, size - (size_t)n, ", and %d other attributes and shapes",
                      g->n_variant);
    snprintf(title + n, size - (size_t)n, ", seed %lld%s", (long long)o->seed,
             o->exact ? ", integers" : "");
}

/* True if every backend can be opened; else prints one error, instead of a failure of every node.
 */
static int backends_open(const compare_opts *o)
{
    static const char *const defaults[] = {"onednn"};
    const char *const *name = o->n_config > 0 ? o->config : defaults;
    const adj_backend *const *backends = checked_backends_list(&o->backends);
    adj_graph *g = adj_graph_new();
    adj_node *y = adj_relu(adj_input(g, "x", ADJ_F32, (adj_shape){1, {1}}));
    int open = 1;
    for (int i = 0; i < (o->n_config > 0 ? o->n_config : 1) && open; i++) {
        adj_compare_config config;
        adj_exec *e = NULL;
        if (adj_compare_config_parse(name[i], backends, &config, NULL) != ADJ_OK)
            continue; /* adj_compare says so */
        const adj_exec_opts options = {.n_fetch = 1,
                                       .fetch = &y,
                                       .backend = config.backend,
                                       .backends = backends,
                                       .threads = 1};
        open = adj_exec_new(g, &options, &e) == ADJ_OK;
        if (!open)
            complain(EXIT_FAILED, "%s: %s", config.name, adj_exec_message(e));
        adj_exec_free(e);
    }
    adj_graph_free(g);
    return open;
}

/* Compares and minimizes failures. CONTINUE, or the exit status. */
static int compare(const compare_opts *o, int alone, compare_run *run)
{
    const compared *g = &run->graph;
    adj_leaf_value labels;
    double seconds = o->seconds;
    adj_compare_opts options = {.exec = {.threads = (int)o->threads,
                                         .backends = checked_backends_list(&o->backends),
                                         .seed = (uint64_t)o->seed},
                                .n_config = o->n_config,
                                .config = o->config,
                                .exact = o->exact != 0,
                                .runs = (int)o->runs};
    const adj_exec_internal internal = {.before_kernel = announce_hangs};
    const adj_trial_opts trials = {.elsewhere = guard_run,
                                   .guard = o->guard != 0,
                                   .alone = alone,
                                   .user = &seconds,
                                   .internal = &internal};
    compared_compute(g, &labels, &options);
    describe(o, g, run->title, sizeof run->title);
    compare_line(o, &o->graph, NULL, run->line);
    const adj_status status = adj_compare_with(g->m.graph, &options, &trials, &run->comparison);
    end_of_kernels();
    if (status != ADJ_OK)
        return complain(EXIT_FAILED, "%s", run->comparison->message);
    run->again = reproducers(o, &options, &trials, run->comparison);
    end_of_kernels();
    return CONTINUE;
}

static int open_run(const compare_opts *o, compare_run *run)
{
    if (compared_open(&run->graph, &o->graph) != ADJ_OK)
        return complain_of(&run->graph.m.error);
    if (adj_node_operand_count(run->graph.root[0]) > 0)
        return CONTINUE;
    return complain(EXIT_USAGE, "--op %s: a leaf has no kernel (expected an op with operands)",
                    o->graph.op.op);
}

static void close_run(compare_run *run)
{
    adj_comparison_free(run->comparison);
    free(run->again);
    compared_close(&run->graph);
}

/* Compares the model again with more images, each distinct node by itself. first: the comparison
 * before; a wrong pass that it found would seem to be the kernels' fault in nodes by themselves. */
static int compare_also(const compare_opts *o, const adj_comparison *first, compare_run *run)
{
    compare_opts also = *o;
    int blames_pass = 0;
    for (int k = 0; k < first->n_config; k++)
        blames_pass |= strncmp(first->config[k].reason, "pass ", 5) == 0;
    if (o->graph.model == NULL || o->graph.node != NULL || o->also_batch == 0 ||
        o->also_batch == o->graph.batch || blames_pass)
        return CONTINUE;
    also.graph.batch = o->also_batch;
    also.also_batch = 0;
    int status = open_run(&also, run);
    return status == CONTINUE ? compare(&also, 1, run) : status;
}

int command_compare(int argc, char **argv)
{
    compare_opts o;
    compare_run run = {0}, also = {0};
    int status = parse(&o, argc, argv);
    if (status == CONTINUE && !o.guard)
        announce_crashes(
            "adjoint compare: a kernel crashed; rerun with --guard to find out which\n");
    if (status == CONTINUE)
        status = open_run(&o, &run);
    const output_file files[] = {{"--json", o.json, OUTPUT_REPORT},
                                 {"--junit", o.junit, OUTPUT_REPORT}};
    if (status == CONTINUE)
        status = check_outputs(2, files);
    if (status == CONTINUE)
        status = backends_open(&o) ? compare(&o, 0, &run) : EXIT_FAILED;
    if (status == CONTINUE)
        status = compare_also(&o, run.comparison, &also);
    if (status == CONTINUE)
        status = write_all(&o, files, &run, &also);
    close_run(&also);
    close_run(&run);
    free(o.config_text);
    checked_backends_close(&o.backends);
    return status;
}
