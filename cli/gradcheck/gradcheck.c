/* gradcheck.c - adjoint gradcheck: are the gradients of a model, or of one op, right?
 *
 * Exit status: 0 all pass, 1 a gradient is wrong (or checking failed), 2 inconclusive, 3 usage. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_check.h"
#include "adjoint_nn.h"
#include "cli/op/backend_name.h"
#include "cli/command.h"
#include "write.h"
#include "cli/op/text.h"
#include "cli/output.h"
#include "graph/printable.h"

typedef struct {
    op_args op;
    const char *model, *backend, *impl, *quarantine, *method, *json, *junit;
    int64_t node, order, draws, seed, threads, batch;
    double rtol, atol;
} gradcheck_opts;

static int parse(gradcheck_opts *o, int argc, char **argv)
{
    const option others[] = {
        {"--model", "NAME", "every node of it that has a gradient", OPTION_TEXT, &o->model, 0, 0},
        {"--node", "ID", "of the model: this one alone", OPTION_INTEGER, &o->node, 0, 1e6},
        {"--batch", "N", "of the model; default: 2", OPTION_INTEGER, &o->batch, 1, 1024},
        {"--backend", "NAME", "onednn (default) or naive", OPTION_TEXT, &o->backend, 0, 0},
        {"--impl", "WORD", "implementations whose name contains it", OPTION_TEXT, &o->impl, 0, 0},
        {"--quarantine", "FILE", "instead of ADJOINT_QUARANTINE's; off: none at all", OPTION_TEXT,
         &o->quarantine, 0, 0},
        {"--method", "NAME", "auto, adjoint, directional, elementwise or richardson", OPTION_TEXT,
         &o->method, 0, 0},
        {"--order", "N", "2: second derivatives as well", OPTION_INTEGER, &o->order, 1, 2},
        {"--draws", "N", "sets of random values; default: 3", OPTION_INTEGER, &o->draws, 1, 1000},
        {"--rtol", "X", "instead of the derived tolerance", OPTION_REAL, &o->rtol, 0, 1e6},
        {"--atol", "X", "instead of the derived tolerance", OPTION_REAL, &o->atol, 0, 1e6},
        {"--seed", "N", "of the values; default: 42", OPTION_INTEGER, &o->seed, 0, 9e15},
        {"--threads", "N", "default: OpenMP's", OPTION_INTEGER, &o->threads, 1, 1024},
        {"--json", "FILE", "the report as JSON; - is stdout", OPTION_TEXT, &o->json, 0, 0},
        {"--junit", "FILE", "the report as JUnit XML; - is stdout", OPTION_TEXT, &o->junit, 0, 0},
    };
    enum { OTHERS = sizeof others / sizeof others[0] };
    option options[OTHERS + OP_OPTIONS];
    memcpy(options, others, sizeof others);
    op_args_options(&o->op, options + OTHERS);
    const usage u = {"gradcheck", "Checks gradients against numbers made another way.",
                     OTHERS + OP_OPTIONS, options};
    return parse_options(&u, argc, argv);
}

static int read_method(const char *name, adj_gradcheck_method *method)
{
    static const char *const names[] = {"auto", "adjoint", "directional", "elementwise",
                                        "richardson"};
    for (int i = 0; i < 5; i++)
        if (strcmp(name, names[i]) == 0) {
            *method = (adj_gradcheck_method)i;
            return CONTINUE;
        }
    return complain("gradcheck", EXIT_USAGE, "unknown method %s (did you mean %s?)", name,
                    nearest_of(name, names, 5, sizeof names[0]));
}

/* ---- what is checked ---- */

static int build_model(const gradcheck_opts *o, adj_graph *g, adj_node **y)
{
    adj_model_opts options = {.batch = o->batch, .training = 1};
    if (o->op.dtype != NULL && !dtype_from_name(o->op.dtype, &options.dtype))
        return complain("gradcheck", EXIT_USAGE,
                        "--dtype: got \"%s\", expected f32, f64, f16 or "
                        "bf16",
                        o->op.dtype);
    if (o->op.data_format != NULL && strcmp(o->op.data_format, "NCHW") == 0)
        options.format = ADJ_NCHW;
    else if (o->op.data_format != NULL && strcmp(o->op.data_format, "NHWC") != 0)
        return complain("gradcheck", EXIT_USAGE, "--data-format: got \"%s\", expected NHWC or NCHW",
                        o->op.data_format);
    const adj_model *model = adj_model_find(o->model, &options);
    if (model == NULL)
        return complain("gradcheck", EXIT_USAGE, "unknown model %s (did you mean %s?)", o->model,
                        adj_model_nearest(o->model)->name);
    adj_node *logits = adj_model_logits(g, model, &options);
    adj_node *labels = adj_input(g, "labels", ADJ_I32, (adj_shape){1, {options.batch}});
    *y = adj_loss_softmax(logits, labels);
    if (*y == NULL)
        return complain("gradcheck", EXIT_USAGE, "%s: %s", o->model, adj_graph_message(g));
    if (o->node >= 0 && (*y = adj_graph_node_at(g, (int)o->node)) == NULL)
        return complain("gradcheck", EXIT_USAGE, "--node: %s has nodes 0 to %d (got %d)", o->model,
                        adj_graph_node_count(g) - 1, (int)o->node);
    return CONTINUE;
}

static int build(const gradcheck_opts *o, adj_graph *g, adj_node **y)
{
    char message[512] = "";
    if (o->backend != NULL && !backend_is_known(o->backend, message, sizeof message))
        return complain("gradcheck", EXIT_USAGE, "%s", message);
    if ((o->model == NULL) == (o->op.op == NULL))
        return complain("gradcheck", EXIT_USAGE, "one of --model NAME and --op NAME is needed");
    if (o->model != NULL)
        return build_model(o, g, y);
    if (o->node >= 0)
        return complain("gradcheck", EXIT_USAGE, "--node goes with --model");
    *y = op_args_build(&o->op, g, message, sizeof message);
    return *y != NULL ? CONTINUE : complain("gradcheck", EXIT_USAGE, "%s", message);
}

/* ---- the line that repeats it ---- */

static void add(char *line, size_t size, const char *name, const char *value)
{
    size_t used = strlen(line);
    if (value != NULL)
        snprintf(line + used, size - used, " %s %s", name, value);
}

static void add_number(char *line, size_t size, const char *name, int64_t value, int64_t usual)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    add(line, size, name, value != usual ? text : NULL);
}

static void add_real(char *line, size_t size, const char *name, double value)
{
    char text[REAL_TEXT];
    write_real(text, value);
    add(line, size, name, value > 0 ? text : NULL);
}

/* What is checked: the op alone where options can say what it is, else the node of the model. */
static void write_subject(const gradcheck_opts *o, const adj_node *n, char *line, size_t size)
{
    op_text text;
    if (o->model == NULL)
        op_args_print(&o->op, line, size);
    else if (!op_text_of(n, &text) || !op_args_print(&text.args, line, size)) {
        snprintf(line, size, "--model %s --node %d", o->model, adj_node_id(n));
        add(line, size, "--data-format", o->op.data_format);
        add(line, size, "--dtype", o->op.dtype);
        add_number(line, size, "--batch", o->batch, 0);
    }
}

static void write_repro(void *user, const adj_node *n, char *line, size_t size)
{
    const gradcheck_opts *o = user;
    char subject[OP_LINE] = "";
    write_subject(o, n, subject, sizeof subject);
    snprintf(line, size, "adjoint gradcheck %s", subject);
    add(line, size, "--backend", o->backend);
    add(line, size, "--impl", o->impl);
    add(line, size, "--quarantine", o->quarantine);
    add(line, size, "--method", o->method);
    add_number(line, size, "--order", o->order, 1);
    add_number(line, size, "--draws", o->draws, 0);
    add_number(line, size, "--threads", o->threads, 0);
    add_real(line, size, "--rtol", o->rtol);
    add_real(line, size, "--atol", o->atol);
    add_number(line, size, "--seed", o->seed, -1);
}

static void print_head(FILE *f, const gradcheck_opts *o, const adj_gradcheck_report *r)
{
    adj_gradcheck_info about = adj_gradcheck_about(r);
    put_text(f, "adjoint gradcheck %s %s  dtype=%s  seed=%lld  backend=%s",
             o->model != NULL ? "--model" : "--op", o->model != NULL ? o->model : o->op.op,
             o->op.dtype != NULL ? o->op.dtype : "f32", (long long)o->seed, about.backend);
    if (about.version[0] != '\0')
        put_text(f, " %s (%s)", about.version, about.isa);
    fprintf(f, "  reference=%s  threads=%d\n", about.reference, about.threads);
}

/* ---- running it ---- */

static int write_reports(const gradcheck_opts *o, const adj_gradcheck_report *r,
                         const output_file files[2])
{
    const gradcheck_source source = {r, o->model != NULL ? o->model : o->op.op, o->seed};
    if (!is_stdout(o->json) && !is_stdout(o->junit)) {
        print_head(stdout, o, r);
        adj_gradcheck_print(stdout, r);
    }
    if (write_output("gradcheck", &files[0], write_gradcheck_json, &source) != EXIT_OK ||
        write_output("gradcheck", &files[1], write_gradcheck_junit, &source) != EXIT_OK)
        return EXIT_FAILED;
    switch (adj_gradcheck_verdict(r)) {
    case ADJ_GRADCHECK_PASS: return EXIT_OK;
    case ADJ_GRADCHECK_FAIL: return EXIT_FAILED;
    default: return EXIT_INCONCLUSIVE;
    }
}

static int check(gradcheck_opts *o, adj_node *y)
{
    adj_gradcheck_opts options = {.order = (int)o->order,
                                  .draws = (int)o->draws,
                                  .seed = (uint64_t)o->seed,
                                  .rtol = o->rtol,
                                  .atol = o->atol,
                                  .backend = o->backend,
                                  .debug.impl = o->impl,
                                  .threads = (int)o->threads,
                                  .debug.quarantine = o->quarantine,
                                  .repro = write_repro,
                                  .user = o};
    adj_gradcheck_report *r = NULL;
    const output_file files[] = {{"--json", o->json, OUTPUT_OR_STDOUT},
                                 {"--junit", o->junit, OUTPUT_OR_STDOUT}};
    int status = o->method != NULL ? read_method(o->method, &options.method) : CONTINUE;
    if (status == CONTINUE)
        status = check_outputs("gradcheck", sizeof files / sizeof files[0], files);
    if (status != CONTINUE)
        return status;
    int single = o->op.op != NULL || o->node >= 0;
    adj_status failed =
        single ? adj_gradcheck_node(y, &options, &r) : adj_gradcheck(y, &options, &r);
    if (failed != ADJ_OK) /* an unknown backend is all that can still be wrong with the options */
        status = complain("gradcheck", failed == ADJ_EARG ? EXIT_USAGE : EXIT_FAILED, "%s",
                          adj_gradcheck_message(r));
    else
        status = write_reports(o, r, files);
    adj_gradcheck_free(r);
    return status;
}

int command_gradcheck(int argc, char **argv)
{
    gradcheck_opts o = {.node = -1, .order = 1, .seed = 42, .batch = 2};
    adj_node *y = NULL;
    int status = parse(&o, argc, argv);
    if (status != CONTINUE)
        return status;
    adj_graph *g = adj_graph_new();
    if (g == NULL)
        return complain("gradcheck", EXIT_FAILED, "out of memory");
    status = build(&o, g, &y);
    if (status == CONTINUE)
        status = check(&o, y);
    adj_graph_free(g);
    return status;
}
