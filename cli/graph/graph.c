/* graph.c - adjoint graph: nodes, gradients and plan of a model as text, as pictures in DOT and as
 * SVG by Graphviz; adjoint summary: a table of its layers. */
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/printable.h"
#include "cli/command.h"
#include "cli/model.h"
#include "cli/standard.h"
#include "exec/report.h"
#include "graph/op.h"

/* ---- pictures ---- */

/* Prints text within the quotes of a label. */
static void put_label(FILE *f, const char *text)
{
    char piece[PIECE];
    for (int n; *text != '\0'; text += n) {
        n = printable(text, piece);
        for (const char *c = piece; *c != '\0'; c++)
            fprintf(f, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
    }
}

/* ---- plans ---- */

static void put_step(FILE *f, const adj_exec *e, int i, const adj_group *g)
{
    const adj_step_info s = adj_exec_step_at(e, i);
    const adj_type t = adj_node_type(g->node[g->n_node - 1]);
    fprintf(f, "  s%d [shape=box, fillcolor=\"%s\", label=\"", i,
            g->node[g->n_node - 1]->role == ADJ_ROLE_FORWARD ? "#dbe9f6" : "#fbe3d0");
    for (int k = 0; k < g->n_node; k++) {
        fprintf(f, "%s%s", k > 0 ? " + " : "", adj_node_op(g->node[k]));
        adj_show_attrs(g->node[k], f);
    }
    fputs("\\n", f);
    if (s.name[0] != '\0') {
        put_label(f, s.name);
        fputs("\\n", f);
    }
    fprintf(f, "%s %s\\n", s.backend, s.impl);
    fprintf(f, "%s %s\"];\n", adj_dtype_name(t.dtype), adj_shape_text(t.shape).s);
}

/* Returns the value that a node without a step of its own shares: that of a reshape. */
static const adj_node *value_of(const adj_node *x, const int from_step[])
{
    while (x->op == &adj_op_reshape && from_step[adj_node_id(x)] < 0)
        x = x->in[0];
    return x;
}

/* True if the group reads an input or a step that is drawn. from_step is indexed by node and
 * negative for leaves and for steps that are left out. */
static int depends_on_input(const adj_group *g, const int from_step[])
{
    for (int k = 0; k < g->n_in; k++) {
        const adj_node *x = value_of(g->in[k], from_step);
        if (x->op == &adj_op_input || from_step[adj_node_id(x)] >= 0)
            return 1;
    }
    return 0;
}

/* Prints the edges to a step. */
static void put_edges(FILE *f, int i, const adj_group *g, const int from_step[])
{
    for (int k = 0; k < g->n_in; k++) {
        const adj_node *x = value_of(g->in[k], from_step);
        if (from_step[adj_node_id(x)] >= 0) {
            fprintf(f, "  s%d -> s%d;\n", from_step[adj_node_id(x)], i);
        } else if (x->op == &adj_op_input) {
            fputs("  \"", f);
            put_label(f, adj_node_name(x));
            fprintf(f, "\" -> s%d;\n", i);
        }
    }
}

/* Prints the steps of a plan as DOT: a box for each step with the nodes that it computes, its
 * backend and kernel. Reorders, copies and what depends on parameters alone are left out. */
static void draw_plan(FILE *f, const adj_exec *e)
{
    const int n = adj_exec_step_count(e);
    const adj_group *first = NULL;
    for (int i = 0; i < n && first == NULL; i++)
        first = adj_exec_step_group(e, i);
    const int nodes = first != NULL ? adj_graph_node_count(adj_node_graph(first->node[0])) : 0;
    int *from_step = allocate(nodes, sizeof *from_step);
    fputs("digraph plan {\n  node [style=filled, fontname=\"Helvetica\", fontsize=10];\n", f);
    for (int id = 0; id < nodes; id++)
        from_step[id] = -1;
    for (int i = 0; i < n; i++) {
        const adj_group *g = adj_exec_step_group(e, i);
        if (g == NULL || !depends_on_input(g, from_step))
            continue;
        put_step(f, e, i, g);
        put_edges(f, i, g, from_step);
        for (int k = 0; k < g->n_out; k++)
            from_step[adj_node_id(g->out[k])] = i;
    }
    fputs("}\n", f);
    free(from_step);
}

/* ---- Graphviz ---- */

/* Runs dot with an option and these streams. Returns 0 if it succeeded. Its searches for short
 * edges are limited: without limits a graph of a thousand nodes takes minutes. */
static int run_dot(const char *option, int in, int out, int err)
{
    char *const arguments[] = {(char *)"dot",          (char *)option,
                               (char *)"-Gnslimit=1",  (char *)"-Gnslimit1=1",
                               (char *)"-Gmclimit=.1", NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status = -1;
    if (posix_spawn_file_actions_init(&actions) != 0)
        return -1;
    const int failed = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO) != 0 ||
                       posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO) != 0 ||
                       posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO) != 0 ||
                       posix_spawnp(&pid, "dot", &actions, NULL, arguments, environ) != 0;
    posix_spawn_file_actions_destroy(&actions);
    return failed || waitpid(pid, &status, 0) != pid ? -1 : status;
}

/* True if the program dot can be started. */
static int can_draw_svg(void)
{
    const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    const int status = nowhere >= 0 ? run_dot("-V", nowhere, nowhere, nowhere) : -1;
    if (nowhere >= 0)
        close(nowhere);
    return status == 0;
}

/* ---- adjoint graph ---- */

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
        return complain(EXIT_USAGE, "--model NAME is missing");
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
    adj_node **roots = n >= 0 ? allocate(n + 1, sizeof *roots) : NULL;
    d->root = roots;
    if (roots == NULL || adj_trainable(d->m.loss, NULL, n, roots + 1) != n)
        return adj_error_set(&d->m.error, ADJ_ENOMEM, "out of memory");
    d->root[0] = d->m.loss;
    d->n_root = 1 + n;
    const adj_status status = adj_grad(d->m.loss, NULL, n, roots + 1, roots + 1);
    return status == ADJ_OK
               ? ADJ_OK
               : adj_error_set(&d->m.error, status, "%s", adj_graph_message(d->m.graph));
}

static adj_status build(drawing *d, const graph_opts *o)
{
    const adj_model_opts options = {.batch = o->batch, .training = o->grad != 0};
    adj_status status = model_build(&d->m, adj_graph_new(), o->model, &options, NULL);
    if (status != ADJ_OK)
        return status;
    if (o->grad) {
        status = add_gradients(d);
    } else {
        d->root = allocate(1, sizeof(adj_node *));
        d->root[d->n_root++] = d->m.logits;
    }
    if (status != ADJ_OK || !o->plan)
        return status;
    const adj_exec_opts plan = {.n_fetch = d->n_root, .fetch = d->root};
    status = adj_exec_new(d->m.graph, &plan, &d->e);
    return status == ADJ_OK ? ADJ_OK
                            : adj_error_set(&d->m.error, status, "%s", adj_exec_message(d->e));
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
        draw_plan(f, d->e);
    else
        adj_print_dot(f, d->n_root, d->root);
    return 0;
}

static int write_svg(FILE *f, const void *source)
{
    FILE *dot = tmpfile();
    if (dot == NULL)
        return 1;
    int failed = write_dot(dot, source) != 0 || fflush(dot) != 0 || fflush(f) != 0;
    rewind(dot);
    failed = failed || run_dot("-Tsvg", fileno(dot), fileno(f), STDERR_FILENO) != 0;
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
        status =
            complain(EXIT_FAILED, "svg: dot is missing (install Graphviz, or use --format dot)");
    else if (build(&d, &o) != ADJ_OK)
        status = complain_of(&d.m.error);
    else
        status = write_only(&out, write[format], &d);
    adj_exec_free(d.e);
    adj_graph_free(d.m.graph);
    free(d.root);
    return status;
}

/* ---- adjoint summary ---- */

static int summarize(const char *model)
{
    model_graph m;
    adj_graph *g = adj_graph_new();
    int status = EXIT_OK;
    if (model_build(&m, g, model, &(adj_model_opts){0}, NULL) == ADJ_OK)
        adj_summary(stdout, m.logits);
    else
        status = complain_of(&m.error);
    adj_graph_free(g);
    return status;
}

int command_summary(int argc, char **argv)
{
    const char *model = NULL;
    const option options[] = {{"--model", "NAME", "model, see adjoint models, or an ONNX file",
                               .text = &model, .names = model_name_at},
                              {0}};
    const remark examples[] = {
        {"adjoint summary --model resnet8", "Layers, shapes, parameters and multiply-adds."},
        {NULL, NULL}};
    const usage u = {.command = "summary",
                     .summary = "Prints a table of a model's layers: op, shape of the result for a "
                                "batch of 1, number of parameters, multiply-adds.",
                     .options = options,
                     .examples = examples};
    const int status = parse_options(&u, argc, argv);
    if (status != CONTINUE)
        return status;
    return model != NULL ? summarize(model) : complain(EXIT_USAGE, "--model NAME is missing");
}
