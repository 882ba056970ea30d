/* compare.c - adjoint compare: a model's training step under several configurations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "compare_again.h"
#include "compare_write.h"
#include "guard.h"

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
    if (strcmp(path, "-") == 0)
        return write_form(stdout, which, c, w) ? EXIT_FAILED : EXIT_OK;
    FILE *f = fopen(path, "w");
    int failed = f == NULL || write_form(f, which, c, w);
    if (f != NULL)
        failed |= fclose(f) != 0;
    return failed ? complain("compare", EXIT_FAILED, "%s: %s cannot be written", option, path)
                  : EXIT_OK;
}

static int is_output(const char *path) { return path != NULL && strcmp(path, "-") == 0; }

static int write_all(const compare_opts *o, const adj_comparison *c, const write_opts *w)
{
    if (!is_output(o->json) && !is_output(o->csv) && !is_output(o->junit) && !is_output(o->html))
        write_table(stdout, c, w);
    int status = write_file("--json", o->json, JSON, c, w);
    if (status == EXIT_OK)
        status = write_file("--csv", o->csv, CSV, c, w);
    if (status == EXIT_OK)
        status = write_file("--junit", o->junit, JUNIT, c, w);
    if (status == EXIT_OK)
        status = write_file("--html", o->html, HTML, c, w);
    if (status == EXIT_OK && adj_comparison_n_failed(c) + adj_comparison_n_whole_failed(c) > 0)
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

int command_compare(int argc, char **argv)
{
    compare_opts o;
    compared g = {0};
    int status = compare_parse(&o, argc, argv);
    if (status == CONTINUE && compared_open(&g, &o.graph) != ADJ_OK)
        status = complain("compare", g.usage ? EXIT_USAGE : EXIT_FAILED, "%s", g.message);
    if (status == CONTINUE)
        status = compare(&o, &g);
    compared_close(&g);
    compare_close(&o);
    return status;
}
