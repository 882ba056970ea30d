/* draw.c - see draw.h. */
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/printable.h"
#include "draw.h"
#include "exec/report.h"
#include "graph/op.h"

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

int draw_plan(FILE *f, const adj_exec *e)
{
    const int n = adj_exec_step_count(e);
    const adj_group *first = NULL;
    for (int i = 0; i < n && first == NULL; i++)
        first = adj_exec_step_group(e, i);
    const int nodes = first != NULL ? adj_graph_node_count(adj_node_graph(first->node[0])) : 0;
    int *from_step = calloc((size_t)nodes + 1, sizeof *from_step);
    if (from_step == NULL)
        return -1;
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
    return 0;
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

int can_draw_svg(void)
{
    const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    const int status = nowhere >= 0 ? run_dot("-V", nowhere, nowhere, nowhere) : -1;
    if (nowhere >= 0)
        close(nowhere);
    return status == 0;
}

int draw_svg(FILE *dot, FILE *svg)
{
    rewind(dot);
    return fflush(svg) != 0 ? -1 : run_dot("-Tsvg", fileno(dot), fileno(svg), STDERR_FILENO);
}
