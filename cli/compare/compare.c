/* compare.c - adjoint compare: a model's training step under several configurations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "again.h"
#include "write.h"
#include "cli/guard.h"
#include "cli/output.h"

typedef enum { JSON, CSV, JUNIT, HTML } form;

static int write_form(FILE *f, form which, const adj_comparison *c, const write_opts *w)
{
    switch (which) {
    case JSON: return write_json(f, c, w);
    case CSV: return write_csv(f, c);
    case JUNIT: return write_junit(f, c, w);
    default: return write_html(f, c, w);
    }
}

static int write_file(const char *option, const char *path, form which, const adj_comparison *c,
                      const write_opts *w)
{
    if (path == NULL)
        return EXIT_OK;
    if (is_stdout(path))
        return write_form(stdout, which, c, w) ? EXIT_FAILED : EXIT_OK;
    FILE *f = fopen(path, "w");
    int failed = f == NULL || write_form(f, which, c, w);
    if (f != NULL)
        failed |= fclose(f) != 0;
    return failed ? complain("compare", EXIT_FAILED, "%s: %s cannot be written", option, path)
                  : EXIT_OK;
}

static int write_all(const compare_opts *o, const adj_comparison *c, const write_opts *w)
{
    if (!is_stdout(o->json) && !is_stdout(o->csv) && !is_stdout(o->junit) && !is_stdout(o->html))
        write_table(stdout, c, w);
    int status = write_file("--json", o->json, JSON, c, w);
    if (status == EXIT_OK)
        status = write_file("--csv", o->csv, CSV, c, w);
    if (status == EXIT_OK)
        status = write_file("--junit", o->junit, JUNIT, c, w);
    if (status == EXIT_OK)
        status = write_file("--html", o->html, HTML, c, w);
    if (status == EXIT_OK &&
        adj_comparison_failed_count(c) + adj_comparison_whole_failed_count(c) > 0)
        status = EXIT_FAILED;
    return status;
}

static void describe(const compare_opts *o, char *what, size_t size)
{
    int n = o->graph.model != NULL
                ? snprintf(what, size, "%s, batch %lld", o->graph.model, (long long)o->graph.batch)
                : snprintf(what, size, "%s", o->graph.op.op);
    snprintf(what + n, size - (size_t)n, ", seed %lld%s", (long long)o->seed,
             o->exact ? ", integers" : "");
}

/* Whether every backend can be opened: what is wrong with a quarantine file is one sentence, not a
 * failure of every node. */
static int backends_open(const compare_opts *o)
{
    static const char *const usual[] = {"onednn"};
    const char *const *name = o->n_config > 0 ? o->config : usual;
    adj_graph *g = adj_graph_new();
    adj_node *y = adj_relu(adj_input(g, "x", ADJ_F32, (adj_shape){1, {1}}));
    int open = 1;
    for (int i = 0; i < (o->n_config > 0 ? o->n_config : 1) && open; i++) {
        adj_compare_config config;
        adj_exec *e = NULL;
        if (adj_compare_config_parse(name[i], &config, NULL, 0) != ADJ_OK)
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
    const adj_leaf_value labels = {g->labels, g->label};
    guard limits = {o->seconds};
    const adj_compare_opts options = {.n_root = g->n_root,
                                      .root = g->root,
                                      .updates = g->updates,
                                      .n_config = o->n_config,
                                      .config = o->config,
                                      .n_value = g->labels != NULL,
                                      .value = &labels,
                                      .seed = (uint64_t)o->seed,
                                      .exact = o->exact != 0,
                                      .runs = (int)o->runs,
                                      .threads = (int)o->threads,
                                      .quarantine = o->quarantine,
                                      .elsewhere = guard_run,
                                      .guard = o->guard != 0,
                                      .user = &limits};
    adj_comparison *c = NULL;
    char what[160], line[LINE];
    int status;
    describe(o, what, sizeof what);
    compare_line(o, &o->graph, NULL, line);
    if (adj_compare(g->graph, &options, &c) != ADJ_OK) {
        status = complain("compare", EXIT_FAILED, "%s", adj_comparison_message(c));
    } else {
        reproducer *again = reproducers(o, &options, c);
        const write_opts w = {.what = what, .repro = line, .again = again, .all = o->all != 0};
        status =
            again != NULL ? write_all(o, c, &w) : complain("compare", EXIT_FAILED, "out of memory");
        free(again);
    }
    adj_comparison_free(c);
    return status;
}

static int check_files(const compare_opts *o)
{
    const output_file files[] = {{"--json", o->json, OUTPUT_OR_STDOUT},
                                 {"--csv", o->csv, OUTPUT_OR_STDOUT},
                                 {"--junit", o->junit, OUTPUT_OR_STDOUT},
                                 {"--html", o->html, OUTPUT_OR_STDOUT}};
    return check_outputs("compare", sizeof files / sizeof files[0], files);
}

int command_compare(int argc, char **argv)
{
    compare_opts o;
    compared g = {0};
    int status = compare_parse(&o, argc, argv);
    if (status == CONTINUE && compared_open(&g, &o.graph) != ADJ_OK)
        status = complain("compare", g.usage ? EXIT_USAGE : EXIT_FAILED, "%s", g.message);
    if (status == CONTINUE)
        status = check_files(&o);
    if (status == CONTINUE)
        status = backends_open(&o) ? compare(&o, &g) : EXIT_FAILED;
    compared_close(&g);
    compare_close(&o);
    return status;
}
