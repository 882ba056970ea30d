/* graph.c - adjoint graph: prints a model's nodes, with its gradients if wanted, or the plan's
 * steps, as text or as a picture. */
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/model.h"
#include "cli/output.h"
#include "draw.h"

typedef enum { FORMAT_TEXT, FORMAT_DOT, FORMAT_SVG } graph_format;
#define FORMAT_WORDS "text dot svg"

typedef struct {
    const char *model, *format, *out;
    int64_t grad, plan, batch;
} graph_opts;

/* Nodes or plan to print. */
typedef struct {
    model_graph m;
    int n_root;
    adj_node **root; /* the logits; or the loss and the gradients of all parameters */
    adj_exec *e;     /* NULL: the graph */
    graph_format format;
    adj_error error; /* why it could not be written */
} drawing;

static int parse(graph_opts *o, int argc, char **argv)
{
    const option options[] = {
        {"--model", "NAME", "model, see adjoint models, or an ONNX file", .text = &o->model,
         .names = model_name_at},
        {"--grad", "", "training: adds the loss and the gradients of all parameters",
         .flag = &o->grad},
        {"--plan", "", "steps of the plan, each with its fused nodes, backend and kernel",
         .flag = &o->plan},
        {"--batch", "N", "images per batch; default: 1", .integer = &o->batch, .range = {1, 1024}},
        {"--format", "F", "text, dot (Graphviz) or svg; default: from the name of --out, else text",
         .text = &o->format, .words = FORMAT_WORDS},
        {"--out", "FILE", "file to write; default: standard output", .text = &o->out},
        {0},
    };
    const remark examples[] = {
        {"adjoint graph --model lenet --grad", "Nodes of the network and of its gradients."},
        {"adjoint graph --model resnet8 --plan", "Kernels, layouts and memory of its inference."},
        {"adjoint graph --model resnet8 --grad --out resnet8.svg", "A picture, by Graphviz."},
        {NULL, NULL}};
    const usage u = {.command = "graph",
                     .summary = "Prints the nodes of a model, or the steps of its plan. In "
                                "pictures, blue is the network and orange its gradient.",
                     .options = options,
                     .variables = PLAN_VARIABLES,
                     .examples = examples};
    const int status = parse_options(&u, argc, argv);
    if (status == CONTINUE && o->model == NULL)
        return complain("graph", EXIT_USAGE, "--model NAME is missing");
    return status;
}

static graph_format format_of(const graph_opts *o)
{
    if (o->format != NULL)
        return (graph_format)word_index(FORMAT_WORDS, o->format);
    const char *end = o->out != NULL ? strrchr(o->out, '.') : NULL;
    const int i = end != NULL ? word_index(FORMAT_WORDS, end + 1) : -1;
    return i > 0 ? (graph_format)i : FORMAT_TEXT;
}

/* Adds the gradients of all parameters. */
static adj_status add_gradients(drawing *d)
{
    const int n = adj_trainable(d->m.loss, NULL, 0, NULL);
    adj_node **roots = n >= 0 ? calloc((size_t)n + 1, sizeof *roots) : NULL;
    if (roots == NULL)
        return adj_error_set(&d->error, ADJ_ENOMEM, "out of memory");
    d->root = roots;
    d->root[0] = d->m.loss;
    d->n_root = 1 + n;
    if (adj_trainable(d->m.loss, NULL, n, roots + 1) != n)
        return adj_error_set(&d->error, ADJ_ENOMEM, "out of memory");
    const adj_status status = adj_grad(d->m.loss, NULL, n, roots + 1, roots + 1);
    return status == ADJ_OK ? ADJ_OK
                            : adj_error_set(&d->error, status, "%s", adj_graph_message(d->m.graph));
}

static adj_status build(drawing *d, const graph_opts *o)
{
    const adj_model_opts options = {.batch = o->batch, .training = o->grad != 0};
    adj_status status = model_build(&d->m, adj_graph_new(), o->model, &options, NULL);
    if (status != ADJ_OK)
        return adj_error_set(&d->error, status, "%s", d->m.error.message);
    if (o->grad)
        status = add_gradients(d);
    else if ((d->root = calloc(1, sizeof(adj_node *))) != NULL)
        d->root[d->n_root++] = d->m.logits;
    else
        status = adj_error_set(&d->error, ADJ_ENOMEM, "out of memory");
    if (status != ADJ_OK || !o->plan)
        return status;
    const adj_exec_opts plan = {.n_fetch = d->n_root, .fetch = d->root};
    status = adj_exec_new(d->m.graph, &plan, &d->e);
    return status == ADJ_OK ? ADJ_OK
                            : adj_error_set(&d->error, status, "%s", adj_exec_message(d->e));
}

static int write_text(FILE *f, const void *source)
{
    const drawing *d = source;
    if (d->e != NULL)
        adj_exec_print(f, d->e);
    else
        adj_print(f, d->n_root, d->root);
    return 0;
}

static int write_dot(FILE *f, const void *source)
{
    const drawing *d = source;
    if (d->e != NULL)
        return draw_plan(f, d->e);
    adj_print_dot(f, d->n_root, d->root);
    return 0;
}

static int write_svg(FILE *f, const void *source)
{
    FILE *dot = tmpfile();
    int failed = dot == NULL || write_dot(dot, source) != 0 || fflush(dot) != 0;
    if (!failed)
        failed = draw_svg(dot, f) != 0;
    if (dot != NULL)
        fclose(dot);
    return failed;
}

int command_graph(int argc, char **argv)
{
    graph_opts o = {.batch = 1};
    drawing d = {0};
    int status = parse(&o, argc, argv);
    if (status != CONTINUE)
        return status;
    int (*const write[])(FILE *, const void *) = {write_text, write_dot, write_svg};
    const graph_format format = format_of(&o);
    const output_file out = {"--out", o.out != NULL ? o.out : "-", OUTPUT_REPORT};
    if (format == FORMAT_SVG && !can_draw_svg())
        status = complain("graph", EXIT_FAILED,
                          "svg: dot is missing (install Graphviz, or use --format dot)");
    else if (build(&d, &o) != ADJ_OK)
        status = complain("graph", d.m.is_known ? EXIT_FAILED : EXIT_USAGE, "%s", d.error.message);
    else
        status = write_only("graph", &out, write[format], &d);
    adj_exec_free(d.e);
    adj_graph_free(d.m.graph);
    free(d.root);
    return status;
}
