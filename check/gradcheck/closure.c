/* closure.c - selects the producers that are checked together with a node, and compares nodes.
 *
 * Three kinds of operand keep their producer: one that is a function of the node's other operands
 * (max_pool_grad(x, y, dy) requires y = max_pool(x)); one computed by the op's maker (batch_norm's
 * rule differs for the statistics of x); and one whose producer changes what the rule builds. For
 * the third kind the rule is applied to leaves and to the graph's operands, and the results are
 * compared. All other operands become leaves. */
#include <string.h>

#include "check/compare/compare.h"
#include "gradcheck.h"

enum { DEPTH = 2 }; /* producers of producers */

int stops_gradient(const adj_node *n)
{
    return n->n_in > 0 && (n->op->flags & ADJ_OP_NO_GRADIENT || n->op == &adj_op_stop_gradient ||
                           !adj_is_float(n->type.dtype));
}

/* True if operand k keeps its producer. */
static int stays(const adj_node *n, int k)
{
    return is_inner_operand(n, k) ||
           (k < ADJ_NAMED_OPERANDS && n->in[k]->n_in > 0 && n->in[k]->op == n->op->maker[k]);
}

/* ---- nodes that are the same to check ---- */

static int same_node(const adj_node *a, const adj_node *b)
{
    return a->op == b->op && a->n_in == b->n_in && is_same_type(a->type, b->type) &&
           (a->op->schema == NULL || memcmp(a->attrs, b->attrs, adj_attr_size(a->op)) == 0);
}

/* True if of_a and of_b are the same op on operands at equal positions of a and b. */
static int same_producer(const adj_node *a, const adj_node *of_a, const adj_node *b,
                         const adj_node *of_b)
{
    if (!same_node(of_a, of_b))
        return 0;
    for (int k = 0; k < of_a->n_in; k++)
        if (!is_same_type(of_a->in[k]->type, of_b->in[k]->type) ||
            adj_operand_position(a, of_a->in[k]) != adj_operand_position(b, of_b->in[k]))
            return 0;
    return 1;
}

int adj_gradcheck_same(const adj_node *a, const adj_node *b)
{
    if (a == NULL || b == NULL || !same_producer(a, a, b, b))
        return 0;
    for (int k = 0; k < a->n_in; k++)
        if (stays(a, k) != stays(b, k) || (stays(a, k) && !same_producer(a, a->in[k], b, b->in[k])))
            return 0;
    return 1;
}

/* True if the producers down to that depth are the same, too. */
static int same_producers(const adj_node *a, const adj_node *b, int depth)
{
    for (int k = 0; k < a->n_in && depth > 0; k++)
        if (!(a->in[k]->n_in == 0 && b->in[k]->n_in == 0) &&
            (!same_node(a->in[k], b->in[k]) || !same_producers(a->in[k], b->in[k], depth - 1)))
            return 0;
    return 1;
}

int is_repeated(const adj_graph *g, const char *need, const adj_node *n, int depth)
{
    for (uint32_t id = 0; id < n->id; id++)
        if (need[id] && adj_gradcheck_same(g->node[id], n) && same_producers(g->node[id], n, depth))
            return 1;
    return 0;
}

/* ---- a node's closure ---- */

static void mark(const adj_node *n, int depth, char *inside)
{
    inside[n->id] = 1;
    for (int k = 0; k < n->n_in; k++) {
        const adj_node *v = n->in[k];
        const int is_deep = depth > 0 && v->op->grad != NULL && adj_is_float(v->type.dtype);
        if (is_deep || stays(n, k))
            mark(v, is_deep ? depth - 1 : 0, inside);
    }
}

/* Adds the operands of u that are leaves and not there yet. */
static void add_leaves(closure *c, const adj_node *u)
{
    for (int k = 0; k < u->n_in; k++) {
        int is_new = !c->inside[u->in[k]->id];
        for (int i = 0; i < c->n_leaf && is_new; i++)
            is_new = c->leaf[i].node != u->in[k];
        if (is_new)
            c->leaf[c->n_leaf++] = (struct closure_leaf){u->in[k], u, k};
    }
}

adj_status open_closure(const adj_node *n, int depth, region *p, closure *c)
{
    *c = (closure){.node = n, .inside = region_alloc(p, (size_t)n->id + 1, 1)};
    size_t places = 1;
    if (c->inside == NULL)
        return ADJ_ENOMEM;
    mark(n, depth, c->inside);
    for (uint32_t id = 0; id <= n->id; id++)
        places += c->inside[id] ? (size_t)n->graph->node[id]->n_in : 0;
    if ((c->leaf = region_alloc(p, places, sizeof *c->leaf)) == NULL)
        return ADJ_ENOMEM;
    add_leaves(c, n);
    for (uint32_t id = 0; id < n->id; id++)
        if (c->inside[id])
            add_leaves(c, n->graph->node[id]);
    return ADJ_OK;
}

adj_status copy_closure(const closure *c, adj_graph *g, const adj_compare_config *config, region *p,
                        adj_node *image[])
{
    for (int i = 0; i < c->n_leaf; i++) {
        char name[32];
        snprintf(name, sizeof name, "in%d", i);
        const adj_node *n = c->leaf[i].node;
        image[n->id] = adj_input(g, name, config_dtype(config, n->type.dtype), n->type.shape);
    }
    for (uint32_t id = 0; id <= c->node->id && g->status == ADJ_OK; id++) {
        const adj_node *n = c->node->graph->node[id];
        adj_node **in = c->inside[id] ? region_alloc(p, (size_t)n->n_in + 1, sizeof *in) : NULL;
        if (c->inside[id] && in == NULL)
            return ADJ_ENOMEM;
        for (int k = 0; k < n->n_in && in != NULL; k++)
            in[k] = image[n->in[k]->id];
        if (in != NULL)
            image[id] = config_rule(config, g, n, in);
    }
    return g->status;
}

/* ---- what a rule looks at ---- */

/* Nodes that a gradient rule builds over a closure. */
typedef struct {
    closure closure;
    adj_graph *graph;
    adj_node **image, *dy, **dx;
} answer;

static adj_status ask_rule(const adj_node *n, int depth, region *p, answer *a)
{
    const adj_compare_config own = {.name = "own"};
    a->graph = adj_graph_new_with(ADJ_VERSION, &(adj_graph_opts){.allocator = &p->allocator});
    a->image = region_alloc(p, (size_t)n->id + 1, sizeof *a->image);
    a->dx = region_alloc(p, (size_t)n->n_in + 1, sizeof *a->dx);
    if (a->graph == NULL || a->image == NULL || a->dx == NULL ||
        open_closure(n, depth, p, &a->closure) != ADJ_OK)
        return ADJ_ENOMEM;
    const adj_status status = copy_closure(&a->closure, a->graph, &own, p, a->image);
    if (status != ADJ_OK)
        return status;
    a->dy = adj_input(a->graph, "dy", n->type.dtype, n->type.shape);
    if (a->dy != NULL)
        n->op->grad(a->image[n->id], a->dy, a->dx);
    return a->graph->status;
}

/* True if a and b are equal subgraphs; is: by id of a's graph, the node matched in b's. */
static int is_alike(const adj_node *a, const adj_node *b, const adj_node **is)
{
    if (a == NULL || b == NULL || is[a->id] != NULL)
        return a == NULL ? b == NULL : b != NULL && is[a->id] == b;
    int alike = same_node(a, b) && a->n_in > 0;
    double of_a, of_b;
    if (adj_is_fill(a, &of_a) && adj_is_fill(b, &of_b))
        alike = same_node(a, b);
    for (int k = 0; k < a->n_in && alike; k++)
        alike = is_alike(a->in[k], b->in[k], is);
    if (alike)
        is[a->id] = b;
    return alike;
}

static adj_status answers_alike(const adj_node *n, const answer *a, const answer *b, region *p,
                                int *alike)
{
    const adj_node **is = region_alloc(p, (size_t)a->graph->n_node, sizeof(adj_node *));
    if (is == NULL)
        return ADJ_ENOMEM;
    for (uint32_t id = 0; id <= n->id; id++)
        if (a->image[id] != NULL && b->image[id] != NULL)
            is[a->image[id]->id] = b->image[id];
    is[a->dy->id] = b->dy;
    *alike = 1;
    for (int k = 0; k < n->n_in; k++)
        *alike &= is_alike(a->dx[k], b->dx[k], is);
    return ADJ_OK;
}

adj_status closure_depth(const adj_node *n, int *depth)
{
    region p = {.allocator = n->graph->region.allocator};
    answer a[DEPTH + 1] = {{.graph = NULL}};
    adj_status status = ADJ_OK;
    const int has_rule = n->op->grad != NULL && adj_is_float(n->type.dtype);
    *depth = 0;
    for (int d = 0; d <= DEPTH && has_rule && status == ADJ_OK; d++)
        status = ask_rule(n, d, &p, &a[d]);
    while (has_rule && status == ADJ_OK && *depth < DEPTH) {
        int alike = 0;
        status = answers_alike(n, &a[*depth], &a[DEPTH], &p, &alike);
        if (alike)
            break;
        ++*depth;
    }
    for (int d = 0; d <= DEPTH; d++)
        adj_graph_free(a[d].graph);
    region_free(&p);
    return status == ADJ_ENOMEM ? status : ADJ_OK;
}
