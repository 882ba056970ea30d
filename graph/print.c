/* print.c - prints a graph as text and as Graphviz DOT: the nodes that some roots need,
 * renumbered from 0 so that the same model prints the same whatever else the graph holds.
 * Forward, gradient and update nodes are marked. */

#include "base/printable.h"
#include "graph.h"

typedef struct {
    const adj_graph *graph;
    int *number; /* by id; -1 if not needed */
} numbering;

/* Numbers the needed nodes; number is NULL if out of memory or if nothing is to be printed. */
static numbering number_needed(int n, adj_node *const root[])
{
    numbering m = {0};
    int count = 0;
    for (int i = 0; root != NULL && i < n && m.graph == NULL; i++)
        m.graph = root[i] != NULL ? root[i]->graph : NULL;
    if (m.graph == NULL)
        return m;
    const adj_allocator *a = &m.graph->region.allocator;
    if ((m.number = adj_alloc(a, (size_t)m.graph->n_node * sizeof(int))) == NULL)
        return m;
    for (int i = 0; i < n; i++)
        if (root[i] != NULL && root[i]->graph == m.graph)
            m.number[root[i]->id] = 1;
    for (int id = m.graph->n_node - 1; id >= 0; id--)
        for (int k = 0; m.number[id] && k < m.graph->node[id]->n_in; k++)
            m.number[m.graph->node[id]->in[k]->id] = 1;
    for (int id = 0; id < m.graph->n_node; id++)
        m.number[id] = m.number[id] ? count++ : -1;
    return m;
}

static const char role_mark[] = {
    [ADJ_ROLE_FORWARD] = ' ', [ADJ_ROLE_GRADIENT] = 'g', [ADJ_ROLE_UPDATE] = 'u'};

/* Prints a quote or a backslash after a backslash, and a control character as a backslash and a
 * code. DOT needs one more backslash to take that as text. */
static void print_escaped(FILE *f, const char *s, const char *backslash)
{
    char piece[PIECE];
    for (int n; *s != '\0'; s += n) {
        n = printable(s, piece);
        if (*s == '\n')
            fprintf(f, "%sn", backslash);
        else if (*s == '"' || *s == '\\')
            fprintf(f, "\\%c", *s);
        else
            for (const char *c = piece; *c != '\0'; c++)
                fprintf(f, "%.*s%s", *c != '\\', c, *c == '\\' ? backslash : "");
    }
}

void print_name(FILE *f, const char *name)
{
    fputs(" \"", f);
    print_escaped(f, name, "\\");
    fputc('"', f);
}

/* Prints attributes and name. */
static void print_details(FILE *f, const adj_node *n)
{
    adj_show_attrs(n, f);
    if (n->name != NULL)
        print_name(f, n->name);
}

void print_node(FILE *f, const adj_node *n)
{
    fputs(n->op->name, f);
    print_details(f, n);
    fprintf(f, " %s%s", adj_dtype_name(n->type.dtype), adj_shape_text(n->type.shape).s);
}

void adj_print(FILE *f, int n, adj_node *const roots[])
{
    numbering m = number_needed(n, roots);
    for (int id = 0; f != NULL && m.number != NULL && id < m.graph->n_node; id++) {
        const adj_node *node = m.graph->node[id];
        if (m.number[id] < 0)
            continue;
        fprintf(f, "%c %%%-3d %-4s %-18s = %s", role_mark[node->role], m.number[id],
                adj_dtype_name(node->type.dtype), adj_shape_text(node->type.shape).s,
                node->op->name);
        fputc('(', f);
        for (int k = 0; k < node->n_in; k++)
            fprintf(f, "%s%%%d", k > 0 ? ", " : "", m.number[node->in[k]->id]);
        fputc(')', f);
        print_details(f, node);
        fputc('\n', f);
    }
    if (m.number != NULL)
        adj_release(&m.graph->region.allocator, m.number);
}

static const char *const role_style[] = {
    [ADJ_ROLE_FORWARD] = "fillcolor=\"#dbe9f6\"",
    [ADJ_ROLE_GRADIENT] = "fillcolor=\"#fbe3d0\"",
    [ADJ_ROLE_UPDATE] = "fillcolor=\"#ddf0d8\"",
};

static void print_dot_node(FILE *f, const numbering *m, const adj_node *n)
{
    int leaf = (n->op->flags & ADJ_OP_LEAF) != 0;
    fprintf(f, "  n%d [shape=%s, %s, label=\"", m->number[n->id], leaf ? "ellipse" : "box",
            role_style[n->role]);
    fputs(n->op->name, f);
    adj_show_attrs(n, f);
    if (n->name != NULL) {
        fputs("\\n", f);
        print_escaped(f, n->name, "\\\\");
    }
    fprintf(f, "\\n%s %s\"];\n", adj_dtype_name(n->type.dtype), adj_shape_text(n->type.shape).s);
    for (int k = 0; k < n->n_in; k++)
        fprintf(f, "  n%d -> n%d;\n", m->number[n->in[k]->id], m->number[n->id]);
}

void adj_print_dot(FILE *f, int n, adj_node *const roots[])
{
    numbering m = number_needed(n, roots);
    fputs("digraph adjoint {\n  node [style=filled, fontname=\"Helvetica\", fontsize=10];\n", f);
    for (int id = 0; m.number != NULL && id < m.graph->n_node; id++)
        if (m.number[id] >= 0)
            print_dot_node(f, &m, m.graph->node[id]);
    fputs("}\n", f);
    if (m.number != NULL)
        adj_release(&m.graph->region.allocator, m.number);
}
