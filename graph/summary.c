/* summary.c - prints a network as a table of its layers: result, parameters, multiply-adds.
 *
 * A layer is the set of nodes that read parameters of one prefix ("conv1/w", "conv1/b" or
 * "conv1.weight", "conv1.bias"), at the place of the first such node; a pool is a layer without
 * parameters. Activations and reshapes have no row. */
#include <inttypes.h>
#include <string.h>

#include "base/printable.h"
#include "graph.h"

typedef struct {
    const adj_node *first; /* NULL for no layer */
    const char *prefix;    /* first n characters, not terminated; a pool's op */
    int n;
    int64_t parameters;
    int64_t multiply_adds;
} layer;

/* True if the op gives a parameter another type or order of elements. */
static int is_view(const adj_node *n)
{
    return n->op == &adj_op_cast || n->op == &adj_op_reshape || n->op == &adj_op_transpose;
}

/* Returns the parameter that operand k of n is, directly or through views; NULL if it is none. */
static const adj_node *param_operand(const adj_node *n, int k)
{
    const adj_node *x = n->in[k];
    while (is_view(x))
        x = x->in[0];
    return x->op == &adj_op_param ? x : NULL;
}

/* Returns the length of a parameter's name up to its last slash or dot, or of all of it. */
static int prefix_length(const char *name)
{
    size_t n = strlen(name);
    while (n > 0 && name[n - 1] != '/' && name[n - 1] != '.')
        n--;
    return (int)(n > 0 ? n - 1 : strlen(name));
}

/* Returns the layer of that prefix, or adds one after the *n layers. */
static layer *layer_named(layer all[], int *n, const adj_node *first, const char *prefix,
                          int length)
{
    for (int i = 0; i < *n; i++)
        if (all[i].n == length && strncmp(all[i].prefix, prefix, (size_t)length) == 0)
            return &all[i];
    all[*n] = (layer){.first = first, .prefix = prefix, .n = length};
    return &all[(*n)++];
}

static int add_layers(const adj_graph *g, const char *needed, char *seen, layer all[])
{
    int n = 0;
    for (int id = 0; id < g->n_node; id++) {
        const adj_node *node = g->node[id];
        layer *l = NULL;
        if (!needed[id] || is_view(node))
            continue;
        for (int k = 0; k < node->n_in; k++) {
            const adj_node *p = param_operand(node, k);
            if (p == NULL)
                continue;
            l = layer_named(all, &n, node, p->name, prefix_length(p->name));
            l->parameters += seen[p->id] ? 0 : adj_shape_elems(p->type.shape);
            seen[p->id] = 1; /* a layer has counted it */
        }
        if (l == NULL && node->op->schema != NULL && node->op->schema->geom != 0)
            all[n++] = (layer){node, node->op->name, (int)strlen(node->op->name), 0, 0};
        else if (l != NULL && node->op->flop != NULL && node->n_in == 2)
            l->multiply_adds += (int64_t)(node->op->flop(node) / 2);
    }
    return n;
}

/* Returns the layer's result: the node that its builder has labeled, or the first one. */
static const adj_node *result_of(const adj_graph *g, const layer *l)
{
    for (int id = (int)l->first->id; id < g->n_node; id++) {
        const char *name = g->node[id]->name;
        if (name != NULL && strncmp(name, l->prefix, (size_t)l->n) == 0 && name[l->n] == '\0')
            return g->node[id];
    }
    return l->first;
}

/* Prints the first n characters of a name, escaped, in a column of that width. */
static void print_column(FILE *f, const char *name, int n, int width)
{
    char piece[PIECE];
    for (int i = 0; i < n;) {
        i += printable(name + i, piece);
        fputs(piece, f);
        width -= (int)strlen(piece);
    }
    fprintf(f, "%*s", width > 0 ? width : 0, "");
}

static void print_layers(FILE *f, const adj_graph *g, const layer all[], int n)
{
    int64_t parameters = 0, multiply_adds = 0;
    int width = 24;
    for (int i = 0; i < n; i++)
        width = all[i].n > width ? all[i].n : width;
    fprintf(f, "%-*s %-24s %-20s %12s %14s\n", width, "layer", "op", "result", "parameters",
            "multiply-adds");
    for (int i = 0; i < n; i++) {
        const layer *l = &all[i];
        print_column(f, l->prefix, l->n, width);
        fprintf(f, " %-24s %-20s %12" PRId64 " %14" PRId64 "\n", l->first->op->name,
                adj_shape_text(result_of(g, l)->type.shape).s, l->parameters, l->multiply_adds);
        parameters += l->parameters;
        multiply_adds += l->multiply_adds;
    }
    fprintf(f, "%-*s %-24s %-20s %12" PRId64 " %14" PRId64 "\n", width, "total", "", "", parameters,
            multiply_adds);
}

void adj_summary(FILE *f, const adj_node *y)
{
    if (f == NULL || y == NULL)
        return;
    const adj_graph *g = y->graph;
    region r = {.allocator = g->region.allocator};
    const size_t n = (size_t)g->n_node;
    char *needed = region_alloc(&r, n, 1), *seen = region_alloc(&r, n, 1);
    layer *all = region_alloc(&r, n, sizeof *all);
    if (needed != NULL && seen != NULL && all != NULL) {
        mark_needed(g, 1, &y, needed);
        print_layers(f, g, all, add_layers(g, needed, seen, all));
    }
    region_free(&r);
}
