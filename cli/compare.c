/* compare.c - adjoint compare: a model's training step under several configurations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "compare_graph.h"
#include "compare_write.h"
#include "guard.h"

enum { MOST_CONFIGS = 32 };

typedef struct {
    compared_opts graph;
    const char *configs, *json, *csv, *junit, *html;
    const char *quarantine;
    double seconds;
    int64_t seed, runs, threads, exact, all, guard;
} compare_opts;

static int parse(compare_opts *o, int argc, char **argv)
{
    const option options[] = {
        {"--model", "NAME", "a training step of it; default: lenet", OPTION_TEXT, &o->graph.model,
         0, 0},
        {"--op", "NAME", "one op and its gradients instead of a model", OPTION_TEXT,
         &o->graph.op.op, 0, 0},
        {"--in", "N,H,W,C", "its first operand's shape", OPTION_TEXT, &o->graph.op.in, 0, 0},
        {"--filter", "H,W,C,O", "its filter's shape", OPTION_TEXT, &o->graph.op.filter, 0, 0},
        {"--data-format", "F", "NHWC (default) or NCHW", OPTION_TEXT, &o->graph.op.data_format, 0,
         0},
        {"--padding", "P", "SAME (default), VALID or EXPLICIT", OPTION_TEXT, &o->graph.op.padding,
         0, 0},
        {"--explicit-paddings", "LIST", "eight numbers", OPTION_TEXT,
         &o->graph.op.explicit_paddings, 0, 0},
        {"--strides", "LIST", "four numbers in data format order", OPTION_TEXT,
         &o->graph.op.strides, 0, 0},
        {"--dilations", "LIST", "four numbers", OPTION_TEXT, &o->graph.op.dilations, 0, 0},
        {"--ksize", "LIST", "four numbers", OPTION_TEXT, &o->graph.op.ksize, 0, 0},
        {"--dtype", "TYPE", "of the op; default: f32", OPTION_TEXT, &o->graph.op.dtype, 0, 0},
        {"--configs", "A,B,...", "the first is the reference; default: naive:f64,naive,onednn",
         OPTION_TEXT, &o->configs, 0, 0},
        {"--batch", "N", "default: 2", OPTION_INTEGER, &o->graph.batch, 1, 4096},
        {"--height", "N", "of the images; default: the model's", OPTION_INTEGER, &o->graph.height,
         1, 4096},
        {"--width", "N", "the same", OPTION_INTEGER, &o->graph.width, 1, 4096},
        {"--seed", "N", "of the values; default: 1", OPTION_INTEGER, &o->seed, 0, 1e15},
        {"--runs", "N", "timed ones; default: 5", OPTION_INTEGER, &o->runs, 1, 1000},
        {"--threads", "N", "default: OpenMP's", OPTION_INTEGER, &o->threads, 1, 1024},
        {"--exact", "", "integers for data, and equality where sums are exact", OPTION_FLAG,
         &o->exact, 0, 0},
        {"--guard", "", "every kernel in a process of its own: crashes and hangs are rows",
         OPTION_FLAG, &o->guard, 0, 0},
        {"--timeout", "SECONDS", "of such a process; default: 10", OPTION_REAL, &o->seconds, 0.1,
         1e4},
        {"--quarantine", "FILE", "instead of ADJOINT_QUARANTINE's; off: none at all", OPTION_TEXT,
         &o->quarantine, 0, 0},
        {"--all", "", "a line for every node, not for every op", OPTION_FLAG, &o->all, 0, 0},
        {"--json", "FILE", "everything, for programs; - is the output", OPTION_TEXT, &o->json, 0,
         0},
        {"--csv", "FILE", "the rows", OPTION_TEXT, &o->csv, 0, 0},
        {"--junit", "FILE", "for CI", OPTION_TEXT, &o->junit, 0, 0},
        {"--html", "FILE", "a page that needs no network", OPTION_TEXT, &o->html, 0, 0},
    };
    const usage u = {"compare",
                     "Compares backends, element types, layouts and threads node by node.",
                     sizeof options / sizeof options[0], options};
    int status = parse_options(&u, argc, argv);
    if (status == CONTINUE && o->graph.model != NULL && o->graph.op.op != NULL)
        return complain("compare", EXIT_USAGE, "--model and --op exclude each other");
    if (o->graph.model == NULL && o->graph.op.op == NULL)
        o->graph.model = "lenet";
    return status;
}

/* Splits "a,b,c" in place. */
static int split(char *text, const char *list[MOST_CONFIGS])
{
    int n = 0;
    for (char *part = text; part != NULL && n < MOST_CONFIGS; n++) {
        char *comma = strchr(part, ',');
        if (comma != NULL)
            *comma = '\0';
        list[n] = part;
        part = comma != NULL ? comma + 1 : NULL;
    }
    return n;
}

static int check_configs(int n, const char *const list[])
{
    char message[512];
    adj_config config;
    if (n == 1)
        return complain("compare", EXIT_USAGE, "--configs: two are needed (got \"%s\")", list[0]);
    for (int i = 0; i < n; i++)
        if (adj_config_parse(list[i], &config, message, sizeof message) != ADJ_OK)
            return complain("compare", EXIT_USAGE, "--configs: %s", message);
    return CONTINUE;
}

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
    if (status == EXIT_OK && adj_comparison_n_failed(c) > 0)
        status = EXIT_FAILED;
    return status;
}

static void add(char *line, size_t size, const char *name, const char *value)
{
    size_t used = strlen(line);
    if (value != NULL)
        snprintf(line + used, size - used, " %s%s%s", name, value[0] != '\0' ? " " : "", value);
}

static void add_number(char *line, size_t size, const char *name, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    add(line, size, name, value > 0 ? text : NULL);
}

/* The command line that gives this report again. */
static void write_repro(char *line, size_t size, const compare_opts *o)
{
    const op_args *op = &o->graph.op;
    snprintf(line, size, "adjoint compare");
    add(line, size, "--model", o->graph.model);
    if (o->graph.model != NULL)
        add_number(line, size, "--batch", o->graph.batch);
    add_number(line, size, "--height", o->graph.height);
    add_number(line, size, "--width", o->graph.width);
    add(line, size, "--op", op->op);
    add(line, size, "--in", op->in);
    add(line, size, "--filter", op->filter);
    add(line, size, "--data-format", op->data_format);
    add(line, size, "--padding", op->padding);
    add(line, size, "--explicit-paddings", op->explicit_paddings);
    add(line, size, "--strides", op->strides);
    add(line, size, "--dilations", op->dilations);
    add(line, size, "--ksize", op->ksize);
    add(line, size, "--dtype", op->dtype);
    add(line, size, "--configs", o->configs);
    add_number(line, size, "--seed", o->seed);
    add(line, size, "--quarantine", o->quarantine);
    add(line, size, "--exact", o->exact ? "" : NULL);
    add(line, size, "--guard", o->guard ? "" : NULL);
}

static int compare(const compare_opts *o, int n, const char *const list[], const compared *g)
{
    const adj_leaf_value labels = {g->labels, g->label};
    guard limits = {o->seconds};
    const adj_compare_opts options = {.n_root = g->n_root,
                                      .root = g->root,
                                      .updates = g->updates,
                                      .n_config = n,
                                      .config = list,
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
    char what[160], repro[1024];
    const write_opts w = {.what = what, .repro = repro, .all = o->all != 0};
    int status;
    write_repro(repro, sizeof repro, o);
    if (o->graph.model != NULL)
        snprintf(what, sizeof what, "%s, batch %lld, seed %lld%s", o->graph.model,
                 (long long)o->graph.batch, (long long)o->seed, o->exact ? ", integers" : "");
    else
        snprintf(what, sizeof what, "%s, seed %lld%s", o->graph.op.op, (long long)o->seed,
                 o->exact ? ", integers" : "");
    if (adj_compare(g->graph, &options, &c) != ADJ_OK)
        status = complain("compare", EXIT_FAILED, "%s", adj_comparison_message(c));
    else
        status = write_all(o, c, &w);
    adj_comparison_free(c);
    return status;
}

int command_compare(int argc, char **argv)
{
    compare_opts o = {.graph = {.batch = 2}, .seconds = 10, .seed = 1, .runs = 5};
    int status = parse(&o, argc, argv), n = 0;
    if (status != CONTINUE)
        return status;
    const char *list[MOST_CONFIGS];
    char *text = o.configs != NULL ? strdup(o.configs) : NULL;
    if (o.configs != NULL && text == NULL)
        return complain("compare", EXIT_FAILED, "out of memory");
    if (text != NULL) {
        n = split(text, list);
        status = check_configs(n, list);
    }
    compared g = {0};
    if (status == CONTINUE && compared_open(&g, &o.graph) != ADJ_OK)
        status = complain("compare", g.usage ? EXIT_USAGE : EXIT_FAILED, "%s", g.message);
    if (status == CONTINUE)
        status = compare(&o, n, list, &g);
    compared_close(&g);
    free(text);
    return status;
}
