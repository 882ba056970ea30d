/* compare.c - adjoint compare: a model's training step under several configurations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "exec/internal.h"
#include "compare.h"
#include "cli/guard.h"
#include "cli/standard.h"

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
    int status = compare_parse(&o, argc, argv);
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
    compare_close(&o);
    return status;
}
