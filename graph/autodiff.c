/* autodiff.c - builds gradients as more nodes of the same graph.
 *
 * One walk goes from y down to node 0. Ids grow, so when the walk reaches a node, every user of
 * it has already added its gradient, and the node's gradient is their sum. Only nodes that lead
 * to some x propagate a gradient. */

#include "graph.h"

typedef struct {
    adj_graph *graph;
    int n;           /* nodes that existed when the walk began */
    char *leads;     /* by id: it is an x, or depends on one */
    adj_node **grad; /* by id: the sum of the gradients so far; NULL if none */
} walk;

/* True if n lets gradients pass and an operand of n is an x or depends on one. */
static int leads_on(const walk *w, const adj_node *n)
{
    int below = 0;
    for (int k = 0; k < n->n_in && !(n->op->flags & ADJ_OP_NO_GRADIENT); k++)
        below |= w->leads[n->in[k]->id];
    return below;
}

static adj_status accumulate(walk *w, const adj_node *operand, adj_node *share)
{
    adj_node **sum = &w->grad[operand->id];
    if (!is_same_type(share->type, operand->type))
        return adj_fail(w->graph, ADJ_ESHAPE,
                        "adj_grad: a gradient of %s has the wrong type (got %s %s, expected %s %s)",
                        operand->op->name, adj_dtype_name(share->type.dtype),
                        adj_shape_text(share->type.shape).s, adj_dtype_name(operand->type.dtype),
                        adj_shape_text(operand->type.shape).s);
    *sum = *sum != NULL ? adj_add(*sum, share) : share;
    return w->graph->status;
}

/* Adds y's gradient to its operands. */
static adj_status propagate(walk *w, adj_node *y)
{
    if (y->op->grad == NULL)
        return adj_fail(w->graph, ADJ_ENOGRAD, "adj_grad: op %s has no gradient rule", y->op->name);
    adj_node **dx = adj_graph_alloc(w->graph, (size_t)y->n_in * sizeof(adj_node *));
    if (dx == NULL)
        return w->graph->status;
    y->op->grad(y, w->grad[y->id], dx);
    for (int i = 0; i < y->n_in && w->graph->status == ADJ_OK; i++)
        if (dx[i] != NULL && w->leads[y->in[i]->id])
            accumulate(w, y->in[i], dx[i]);
    return w->graph->status;
}

static adj_status check_seed(adj_graph *g, const adj_node *y, const adj_node *dy)
{
    if (y == NULL)
        return adj_fail(g, ADJ_EARG, "adj_grad: y is NULL");
    if (!adj_is_float(y->type.dtype))
        return adj_fail(g, ADJ_EDTYPE, "adj_grad: y is not a float (got %s)",
                        adj_dtype_name(y->type.dtype));
    if (dy == NULL && y->type.shape.rank != 0)
        return adj_fail(g, ADJ_ESHAPE, "adj_grad: without dy, y must be a scalar (got %s)",
                        adj_shape_text(y->type.shape).s);
    if (dy != NULL && (dy->graph != g || !is_same_type(dy->type, y->type)))
        return adj_fail(g, ADJ_ESHAPE,
                        "adj_grad: dy does not fit y (got %s %s, expected %s %s of the same graph)",
                        adj_dtype_name(dy->type.dtype), adj_shape_text(dy->type.shape).s,
                        adj_dtype_name(y->type.dtype), adj_shape_text(y->type.shape).s);
    return ADJ_OK;
}

static adj_status check_lists(adj_graph *g, int n, adj_node *const x[], adj_node *const dx[])
{
    if (n < 0)
        return adj_fail(g, ADJ_EARG, "adj_grad: n is negative (got %d)", n);
    if (n > 0 && (x == NULL || dx == NULL))
        return adj_fail(g, ADJ_EARG, "adj_grad: %s is NULL (expected a list of %d)",
                        x == NULL ? "x" : "dx", n);
    for (int i = 0; i < n; i++)
        if (x[i] == NULL || x[i]->graph != g)
            return adj_fail(g, ADJ_EARG, "adj_grad: x[%d] is %s", i,
                            x[i] == NULL ? "NULL" : "of another graph");
    return ADJ_OK;
}

static adj_status walk_down(walk *w, adj_node *y, adj_node *dy, int n, adj_node *const x[])
{
    for (int i = 0; i < n; i++)
        w->leads[x[i]->id] = 1;
    for (int id = 0; id < w->n; id++)
        w->leads[id] |= leads_on(w, w->graph->node[id]);
    w->grad[y->id] = dy != NULL ? dy : adj_fill_like(y, 1);
    for (int id = (int)y->id; id >= 0 && w->graph->status == ADJ_OK; id--)
        if (w->grad[id] != NULL && leads_on(w, w->graph->node[id]))
            propagate(w, w->graph->node[id]);
    return w->graph->status;
}

/* dx may be the array x: x[i] is not read after dx[i] is written. */
static adj_status gradient(adj_node *y, adj_node *dy, int n, adj_node *const x[], adj_node *dx[])
{
    adj_graph *g = y->graph;
    const adj_allocator *a = &g->region.allocator;
    walk w = {.graph = g, .n = g->n_node};
    w.leads = adj_alloc(a, (size_t)w.n);
    w.grad = adj_alloc(a, (size_t)w.n * sizeof(adj_node *));
    if (w.leads == NULL || w.grad == NULL)
        adj_fail(g, ADJ_ENOMEM, "adj_grad: out of memory");
    else
        walk_down(&w, y, dy, n, x);
    for (int i = 0; i < n && g->status == ADJ_OK; i++)
        dx[i] = w.grad[x[i]->id] != NULL ? w.grad[x[i]->id] : adj_fill_like(x[i], 0);
    adj_release(a, w.leads);
    adj_release(a, w.grad);
    return g->status;
}

/* Returns the graph that records a failure; NULL if no argument identifies one. */
static adj_graph *graph_of(const adj_node *y, int n, adj_node *const x[])
{
    const adj_node *known = y;
    for (int i = 0; known == NULL && x != NULL && i < n; i++)
        known = x[i];
    return known != NULL ? known->graph : NULL;
}

adj_status adj_grad(adj_node *y, adj_node *dy, int n, adj_node *const x[], adj_node *dx[])
{
    adj_graph *g = graph_of(y, n, x);
    adj_status status = g != NULL ? g->status : ADJ_EARG;
    if (status == ADJ_OK && (status = check_seed(g, y, dy)) == ADJ_OK &&
        (status = check_lists(g, n, x, dx)) == ADJ_OK) {
        adj_role role = g->role;
        g->role = ADJ_ROLE_GRADIENT;
        status = gradient(y, dy, n, x, dx);
        g->role = role;
    }
    for (int i = 0; i < n && dx != NULL && status != ADJ_OK; i++)
        dx[i] = NULL;
    return status;
}
