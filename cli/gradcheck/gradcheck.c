/* gradcheck.c - adjoint gradcheck: checks the gradients of a model or of one op. Exit status: 0 all
 * pass, 1 a gradient is wrong (or checking failed), 2 inconclusive or not checked, 3 usage. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/backend_option.h"
#include "base/printable.h"
#include "check/inspect.h"
#include "cli/command.h"
#include "cli/guard.h"
#include "cli/emitted.h"
#include "cli/json.h"
#include "cli/op/graph.h"
#include "cli/standard.h"
#include "exec/internal.h"

typedef struct {
    compared_opts graph;
    const char *backend, *impl, *method, *json, *junit;
    int64_t order, draws, seed, threads;
    double rtol, atol;
    const adj_node *first; /* the op as given on the command line */
    checked_backends backends;
    const adj_gradcheck_report *report; /* result */
} gradcheck_opts;

/* Names in the order of adj_gradcheck_method. */
static const char methods[] = "auto adjoint directional elementwise richardson";

static int parse(gradcheck_opts *o, int argc, char **argv)
{
    const option options[] = {
        {"--backend", "NAME", BACKEND_HELP "; " EMITTED_HELP, .text = &o->backend,
         .names = checked_backend_name_at},
        {"--impl", "WORD", "only implementations whose name contains WORD", .text = &o->impl},
        {"--method", "NAME", "auto (default), adjoint, directional, elementwise or richardson",
         .text = &o->method, .words = methods},
        {"--order", "N", "derivatives up to this order, 1 (default) or 2", .integer = &o->order,
         .range = {1, 2}},
        {"--draws", "N", "sets of random values; default: 3", .integer = &o->draws,
         .range = {1, 1000}},
        {"--rtol", "X", "relative tolerance, in place of the derived one", .real = &o->rtol,
         .range = {0, 1e6}},
        {"--atol", "X", "absolute tolerance, in place of the derived one", .real = &o->atol,
         .range = {0, 1e6}},
        {"--seed", "N", "seed of the random values; default: 42", .integer = &o->seed,
         .range = {0, 9e15}},
        {"--threads", "N", THREADS_HELP, .integer = &o->threads, .range = {1, 1024}},
        {"--json", "FILE", JSON_HELP, .text = &o->json, .bare = "-"},
        {"--junit", "FILE", "writes JUnit XML for CI; - is standard output", .text = &o->junit},
        {0},
    };
    option graph[COMPARED_OPTIONS + 1];
    compared_options(&o->graph, 0, graph);
    const remark statuses[] = {
        {"2", "inconclusive: too many values at kinks, too little precision, or not checked"},
        {NULL, NULL}};
    const remark examples[] = {
        {"adjoint gradcheck --model lenet", "Every differentiable node of the model."},
        {"adjoint gradcheck --op conv2d --filter 3,3,3,2 --attr padding=VALID", "One op."},
        {"adjoint gradcheck --op softmax --order 2 --json -",
         "First and second derivatives, as JSON."},
        {NULL, NULL}};
    const usage u = {.command = "gradcheck",
                     .summary = "Checks gradients against independent references.",
                     .options = graph,
                     .more = options,
                     .statuses = statuses,
                     .variables = PLAN_VARIABLES,
                     .examples = examples};
    return parse_options(&u, argc, argv);
}

/* ---- what is checked ---- */

static int build(gradcheck_opts *o, compared *c)
{
    const compared_opts *g = &o->graph;
    adj_error error;
    checked_backends_open(&o->backends, o->backend);
    const adj_backend *const *list = checked_backends_list(&o->backends);
    if (check_backend_option(o->backend, list != NULL ? list : adj_backends,
                             "--backend: ", &error) != ADJ_OK)
        return complain(EXIT_USAGE, "%s", error.message);
    if ((g->model == NULL) == (g->op.op == NULL))
        return complain(EXIT_USAGE, "expected one of --model NAME and --op NAME");
    const char *stray = g->model != NULL ? op_args_given(&g->op, "--dtype --attr") : NULL;
    if (stray != NULL)
        return complain(EXIT_USAGE, "%s requires --op", stray);
    return compared_open(c, g) == ADJ_OK ? CONTINUE : complain_of(&c->m.error);
}

/* ---- the line that repeats it ---- */

/* Writes the subject of the check: the op alone if options can describe it and fit in the line,
 * else the node of the model. */
static void write_subject(const gradcheck_opts *o, const adj_node *n, char *line, size_t size)
{
    compared_opts subject = o->graph;
    op_line own;
    char id[16];
    const size_t used = strlen(line);
    const int is_given =
        o->graph.model == NULL && n == o->first && op_args_given(&o->graph.op, "--dtype") != NULL;
    if (!is_given && op_line_of(n, &own) &&
        compared_repeat(&(compared_opts){.op = own.args}, line, size))
        return;
    line[used] = '\0';
    if (o->graph.model != NULL && adj_node_operand_count(n) > 0) {
        snprintf(id, sizeof id, "%d", adj_node_id(n));
        subject.node = id;
    } else if (is_given) {
        subject.neighbors = 0;
    }
    (void)compared_repeat(&subject, line, size);
}

static void write_repro(void *user, const gradcheck_detail *w, char *line, size_t size)
{
    const gradcheck_opts *o = user;
    repeat_command(line, size, "gradcheck");
    write_subject(o, adj_graph_node_at(adj_node_graph(o->first), w->node), line, size);
    repeat_option(line, size, "--backend", o->backend);
    repeat_option(line, size, "--impl", o->impl);
    repeat_option(line, size, "--method", o->method);
    repeat_number(line, size, "--order", (double)o->order, 1);
    repeat_number(line, size, "--draws", (double)o->draws, 0);
    repeat_number(line, size, "--threads", (double)o->threads, 0);
    repeat_number(line, size, "--rtol", o->rtol, 0);
    repeat_number(line, size, "--atol", o->atol, 0);
    repeat_number(line, size, "--seed", (double)o->seed, -1);
}

static const char *title_of(const gradcheck_opts *o)
{
    return o->graph.model != NULL ? o->graph.model : o->graph.op.op;
}

static void print_head(FILE *f, const gradcheck_opts *o, const adj_gradcheck_report *report)
{
    const gradcheck_conditions r = adj_gradcheck_conditions(report);
    put_text(f, "adjoint gradcheck %s %s  dtype=%s  seed=%lld  backend=%s",
             o->graph.model != NULL ? "--model" : "--op", title_of(o),
             o->graph.op.dtype != NULL ? o->graph.op.dtype : "f32", (long long)o->seed, r.backend);
    if (r.version[0] != '\0')
        put_text(f, " %s (%s)", r.version, r.isa);
    fprintf(f, "  reference=%s  threads=%d\n", r.reference, r.threads);
}

/* ---- the report for programs: 0 on success ---- */

/* JSON has no NaN and no infinity: these are strings. */
static json_t *real(double v)
{
    if (isfinite(v))
        return json_real(v);
    return json_string(isnan(v) ? "NaN" : v > 0 ? "Infinity" : "-Infinity");
}

static const char *const fault_names[] = {
    [ADJ_FAULT_NONE] = "",         [ADJ_FAULT_RULE] = "rule",
    [ADJ_FAULT_KERNEL] = "kernel", [ADJ_FAULT_REFERENCE] = "reference",
    [ADJ_FAULT_PLAN] = "plan",     [ADJ_FAULT_GRAPH] = "graph"};

static json_t *row_json(const gradcheck_opts *opts, const gradcheck_detail *w)
{
    char repro[1024] = "";
    if (w->result == ADJ_GRADCHECK_FAIL)
        write_repro((void *)opts, w, repro, sizeof repro);
    json_t *o =
        json_pack("{s:i, s:s, s:s, s:s, s:s, s:s, s:i, s:s, s:o, s:s, s:I, s:I, s:I, s:I, s:b}",
                  "node", w->node, "name", w->name, "op", w->op, "attrs", w->attrs, "wrt", w->wrt,
                  "method", w->method, "order", w->order, "dtype", adj_dtype_name(w->type.dtype),
                  "shape", json_sizes(w->type.shape.rank, w->type.shape.dim), "result",
                  adj_gradcheck_result_name(w->result), "elems", (json_int_t)w->elems, "wrong",
                  (json_int_t)w->wrong, "kinks", (json_int_t)w->kinks, "considered",
                  (json_int_t)w->considered, "repeatable", w->repeatable);
    const struct {
        const char *key;
        double value;
    } reals[] = {{"worst_rel", w->worst_rel},     {"worst_abs", w->worst_abs},
                 {"analytic", w->analytic},       {"numeric", w->numeric},
                 {"uncertainty", w->uncertainty}, {"tolerance", w->tolerance}};
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        json_object_set_new(o, reals[i].key, real(reals[i].value));
    const struct {
        const char *key, *value;
    } texts[] = {{"index", w->index}, {"origin", w->origin}, {"pattern", w->pattern},
                 {"hint", w->hint},   {"blame", w->blame},   {"fault", fault_names[w->fault]},
                 {"repro", repro},    {"reason", w->reason}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].value[0] != '\0')
            json_object_set_new(o, texts[i].key, json_text(texts[i].value));
    return o;
}

static int write_json(FILE *f, const void *source)
{
    const gradcheck_opts *o = source;
    const adj_gradcheck_report *r = o->report;
    const gradcheck_conditions c = adj_gradcheck_conditions(r);
    json_t *rows = json_array();
    for (int i = 0; i < r->n_row; i++)
        json_array_append_new(rows, row_json(o, adj_gradcheck_row_at(r, i)));
    json_t *all = json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:b, s:I, s:s, s:o}", "what",
                            title_of(o), "backend", c.backend, "version", c.version, "isa", c.isa,
                            "reference", c.reference, "threads", c.threads, "repeatable",
                            c.repeatable, "seed", (json_int_t)o->seed, "result",
                            adj_gradcheck_result_name(r->verdict), "rows", rows);
    return json_write(f, all, JSON_INDENT(1), 0);
}

static void put_case(FILE *f, const gradcheck_opts *o, const gradcheck_detail *w)
{
    char repro[1024] = "";
    if (w->result == ADJ_GRADCHECK_FAIL)
        write_repro((void *)o, w, repro, sizeof repro);
    put_escaped(f, FOR_XML, "  <testcase classname=\"gradcheck.%s\" name=\"%s%s%s wrt %s\">", w->op,
                w->name, w->attrs[0] != '\0' ? " " : "", w->attrs, w->wrt);
    if (w->result == ADJ_GRADCHECK_FAIL)
        put_escaped(f, FOR_XML,
                    "\n    <failure message=\"%s\">worst: %s%s analytic=%.9g numeric=%.9g "
                    "tolerance=%.3g; %s; %s; %s</failure>\n  ",
                    w->blame, w->wrt, w->index, w->analytic, w->numeric, w->tolerance, w->pattern,
                    w->hint, repro);
    else if (w->result != ADJ_GRADCHECK_PASS)
        put_escaped(f, FOR_XML, "<skipped message=\"%s\"/>", w->reason);
    fputs("</testcase>\n", f);
}

static int write_junit(FILE *f, const void *source)
{
    const gradcheck_opts *o = source;
    const adj_gradcheck_report *r = o->report;
    put_escaped(f, FOR_XML,
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"adjoint gradcheck "
                "%s\" tests=\"%d\" failures=\"%d\" skipped=\"%d\">\n",
                title_of(o), r->n_row, r->n_result[ADJ_GRADCHECK_FAIL],
                r->n_result[ADJ_GRADCHECK_SKIPPED] + r->n_result[ADJ_GRADCHECK_NOT_CHECKED] +
                    r->n_result[ADJ_GRADCHECK_INCONCLUSIVE]);
    for (int i = 0; i < r->n_row; i++)
        put_case(f, o, adj_gradcheck_row_at(r, i));
    return fputs("</testsuite>\n", f) == EOF;
}

/* ---- running it ---- */

static int write_reports(gradcheck_opts *o, const output_file files[2])
{
    const adj_gradcheck_report *r = o->report;
    if (!is_stdout(o->json) && !is_stdout(o->junit)) {
        print_head(stdout, o, r);
        adj_gradcheck_print_with(stdout, r, write_repro, o);
    }
    if (write_output(&files[0], write_json, o) != EXIT_OK ||
        write_output(&files[1], write_junit, o) != EXIT_OK)
        return EXIT_FAILED;
    switch (r->verdict) {
    case ADJ_GRADCHECK_PASS: return EXIT_OK;
    case ADJ_GRADCHECK_FAIL: return EXIT_FAILED;
    default: return EXIT_INCONCLUSIVE;
    }
}

static int check(gradcheck_opts *o, const compared *c)
{
    const adj_exec_internal internal = {.before_kernel = announce_hangs};
    adj_gradcheck_opts options = {
        .order = (int)o->order,
        .draws = (int)o->draws,
        .rtol = o->rtol,
        .atol = o->atol,
        .exec = {.backend = o->backend,
                 .backends = checked_backends_list(&o->backends),
                 .threads = (int)o->threads,
                 .seed = (uint64_t)o->seed,
                 .updates = c->m.updates,
                 .debug = &(adj_exec_debug){.impl = o->impl, .internal = &internal}}};
    if (o->method != NULL)
        options.method = (adj_gradcheck_method)word_index(methods, o->method);
    const output_file files[] = {{"--json", o->json, OUTPUT_REPORT},
                                 {"--junit", o->junit, OUTPUT_REPORT}};
    int status = check_outputs(sizeof files / sizeof files[0], files);
    if (status != CONTINUE)
        return status;
    int single = o->graph.op.op != NULL || o->graph.node != NULL;
    adj_status failed = single ? adj_gradcheck_nodes(c->n_root, c->root, &options, &o->report)
                               : adj_gradcheck(c->root[0], &options, &o->report);
    end_of_kernels();
    if (failed != ADJ_OK) /* the options were right */
        status = complain(EXIT_FAILED, "%s", o->report->message);
    else
        status = write_reports(o, files);
    adj_gradcheck_free(o->report);
    return status;
}

int command_gradcheck(int argc, char **argv)
{
    gradcheck_opts o = {.graph = {.batch = 2, .neighbors = 8, .sets = 1, .no_gradients = 1},
                        .order = 1,
                        .seed = 42};
    compared c = {0};
    int status = parse(&o, argc, argv);
    if (status != CONTINUE)
        return status;
    announce_crashes(
        "adjoint gradcheck: a kernel crashed; run adjoint compare --guard to find out which\n");
    status = build(&o, &c);
    o.first = c.root[0];
    if (status == CONTINUE)
        status = check(&o, &c);
    compared_close(&c);
    checked_backends_close(&o.backends);
    return status;
}
