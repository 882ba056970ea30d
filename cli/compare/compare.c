/* compare.c - adjoint compare: a model's training step under several configurations. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/command.h"
#include "write.h"
#include "cli/guard.h"
#include "cli/output.h"

enum { FORMS = 4 };
static int (*const write_form[FORMS])(FILE *f, const void *source) = {write_json, write_csv,
                                                                      write_junit, write_html};

static void list_files(const compare_opts *o, output_file files[FORMS])
{
    files[0] = (output_file){"--json", o->json, OUTPUT_OR_STDOUT};
    files[1] = (output_file){"--csv", o->csv, OUTPUT_OR_STDOUT};
    files[2] = (output_file){"--junit", o->junit, OUTPUT_OR_STDOUT};
    files[3] = (output_file){"--html", o->html, OUTPUT_OR_STDOUT};
}

static int write_all(const compare_opts *o, const compare_source *source)
{
    const adj_comparison *c = source->comparison;
    output_file files[FORMS];
    int status = EXIT_OK, taken = 0;
    list_files(o, files);
    for (int i = 0; i < FORMS; i++)
        taken |= is_stdout(files[i].path);
    if (!taken)
        write_table(stdout, source);
    for (int i = 0; i < FORMS && status == EXIT_OK; i++)
        status = write_output("compare", &files[i], write_form[i], source);
    int failed = adj_comparison_failed_count(c) + adj_comparison_whole_failed_count(c) > 0;
    return status == EXIT_OK && failed ? EXIT_FAILED : status;
}

static void describe(const compare_opts *o, const compared *g, char *title, size_t size)
{
    int n = o->graph.model != NULL
                ? snprintf(title, size, "%s, batch %lld", o->graph.model, (long long)o->graph.batch)
                : snprintf(title, size, "%s", o->graph.op.op);
    if (g->n_variant > 0)
        n += snprintf(title + n, size - (size_t)n, ", and %d other attributes and shapes",
                      g->n_variant);
    snprintf(title + n, size - (size_t)n, ", seed %lld%s", (long long)o->seed,
             o->exact ? ", integers" : "");
}

/* Whether every backend can be opened: what is wrong with a quarantine file is one sentence, not a
 * failure of every node. */
static int backends_open(const compare_opts *o)
{
    static const char *const defaults[] = {"onednn"};
    const char *const *name = o->n_config > 0 ? o->config : defaults;
    adj_graph *g = adj_graph_new();
    adj_node *y = adj_relu(adj_input(g, "x", ADJ_F32, (adj_shape){1, {1}}));
    int open = 1;
    for (int i = 0; i < (o->n_config > 0 ? o->n_config : 1) && open; i++) {
        adj_compare_config config;
        adj_exec *e = NULL;
        if (adj_compare_config_parse(name[i], &config, NULL) != ADJ_OK)
            continue; /* adj_compare says so */
        const adj_exec_opts options = {.n_fetch = 1,
                                       .fetch = &y,
                                       .backend = config.backend,
                                       .threads = 1,
                                       .debug.quarantine = o->quarantine};
        open = adj_exec_new(g, &options, &e) == ADJ_OK;
        if (!open)
            complain("compare", EXIT_FAILED, "%s: %s", config.name, adj_exec_message(e));
        adj_exec_free(e);
    }
    adj_graph_free(g);
    return open;
}

/* Compares, looks for what to run again, writes. */
static int compare(const compare_opts *o, const compared *g)
{
    const adj_leaf_value labels = {g->m.labels, g->label};
    guard limits = {o->seconds};
    const adj_compare_opts options = {.n_root = g->n_root,
                                      .root = g->root,
                                      .updates = g->m.updates,
                                      .n_config = o->n_config,
                                      .config = o->config,
                                      .n_value = g->m.labels != NULL,
                                      .value = &labels,
                                      .seed = (uint64_t)o->seed,
                                      .exact = o->exact != 0,
                                      .runs = (int)o->runs,
                                      .threads = (int)o->threads,
                                      .debug.quarantine = o->quarantine,
                                      .elsewhere = guard_run,
                                      .guard = o->guard != 0,
                                      .user = &limits};
    adj_comparison *c = NULL;
    char title[160], line[LINE];
    int status;
    describe(o, g, title, sizeof title);
    compare_line(o, &o->graph, NULL, line);
    if (adj_compare(g->m.graph, &options, &c) != ADJ_OK) {
        status = complain("compare", EXIT_FAILED, "%s", adj_comparison_message(c));
    } else {
        reproducer *again = reproducers(o, &options, c);
        const compare_source source = {c, title, line, again, o->all != 0};
        status = again != NULL ? write_all(o, &source)
                               : complain("compare", EXIT_FAILED, "out of memory");
        free(again);
    }
    adj_comparison_free(c);
    return status;
}

int command_compare(int argc, char **argv)
{
    compare_opts o;
    compared g = {0};
    output_file files[FORMS];
    int status = compare_parse(&o, argc, argv);
    if (status == CONTINUE && compared_open(&g, &o.graph) != ADJ_OK)
        status = complain("compare", g.usage ? EXIT_USAGE : EXIT_FAILED, "%s", g.m.error.message);
    list_files(&o, files);
    if (status == CONTINUE)
        status = check_outputs("compare", FORMS, files);
    if (status == CONTINUE)
        status = backends_open(&o) ? compare(&o, &g) : EXIT_FAILED;
    compared_close(&g);
    compare_close(&o);
    return status;
}
