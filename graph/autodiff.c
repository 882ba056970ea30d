/* autodiff.c - gradients as more nodes of the same graph.
 *
 * One walk from y down to node 0: ids grow, so when a node is reached every user of it has already
 * added its share, and its gradient is the sum of those shares. Only nodes that lead to some x are
 * visited. */
#include <string.h>

#include "graph.h"

typedef struct {
    adj_graph *graph;
    int n;           /* nodes that existed when the walk began */
    char *leads;     /* by id: some x is below this node */
    adj_node **grad; /* by id: the sum of shares so far; NULL: none */
} walk;

/* A node leads to x if it is one of them or an operand leads there and gradients pass. */
static void mark_leading(walk *w, int n_x, adj_node *const x[])
{
    for (int i = 0; i < n_x; i++)
        w->leads[x[i]->id] = 1;
    for (int id = 0; id < w->n; id++) {
        const adj_node *n = w->graph->node[id];
        for (int k = 0; k < n->n_in && !(n->op->flags & ADJ_OP_NO_GRADIENT); k++)
            w->leads[id] |= w->leads[n->in[k]->id];
    }
}

static adj_status accumulate(walk *w, const adj_node *operand, adj_node *share)
{
    adj_node **sum = &w->grad[operand->id];
    if (share->type.dtype != operand->type.dtype ||
        !adj_shape_equal(share->type.shape, operand->type.shape))
        return adj_fail(
            w->graph, ADJ_ESHAPE,
            "adj_grad: a gradient of %s has another type than its value (got %s, expected %s)",
            operand->op->name, adj_shape_text(share->type.shape).s,
            adj_shape_text(operand->type.shape).s);
    *sum = *sum != NULL ? adj_add(*sum, share) : share;
    return w->graph->status;
}

/* Hands y's gradient to its operands. */
static adj_status propagate(walk *w, adj_node *y)
{
    adj_node *few[8] = {NULL}, **dx = few;
    if (y->op->grad == NULL)
        return adj_fail(w->graph, ADJ_ENOGRAD, "adj_grad: op %s has no gradient rule", y->op->name);
    if (y->n_in > 8 &&
        (dx = adj_graph_alloc(w->graph, (size_t)y->n_in * sizeof(adj_node *))) == NULL)
        return w->graph->status;
    y->op->grad(y, w->grad[y->id], dx);
    for (int i = 0; i < y->n_in && w->graph->status == ADJ_OK; i++)
        if (dx[i] != NULL && w->leads[y->in[i]->id])
            accumulate(w, y->in[i], dx[i]);
    return w->graph->status;
}

static adj_status check_arguments(adj_graph *g, const adj_node *y, const adj_node *dy, int n,
                                  adj_node *const x[])
{
    if (!adj_is_float(y->type.dtype))
        return adj_fail(g, ADJ_EDTYPE, "adj_grad: y is no float (got %s)",
                        adj_dtype_name(y->type.dtype));
    if (dy == NULL && y->type.shape.rank != 0)
        return adj_fail(g, ADJ_ESHAPE, "adj_grad: without dy, y must be a scalar (got %s)",
                        adj_shape_text(y->type.shape).s);
    if (dy != NULL && (dy->graph != g || dy->type.dtype != y->type.dtype ||
                       !adj_shape_equal(dy->type.shape, y->type.shape)))
        return adj_fail(g, ADJ_ESHAPE,
                        "adj_grad: dy does not fit y (got %s %s, expected %s %s of the same graph)",
                        adj_dtype_name(dy->type.dtype), adj_shape_text(dy->type.shape).s,
                        adj_dtype_name(y->type.dtype), adj_shape_text(y->type.shape).s);
    for (int i = 0; i < n; i++)
        if (x[i] == NULL || x[i]->graph != g)
            return adj_fail(g, ADJ_EARG, "adj_grad: x[%d] is %s", i,
                            x[i] == NULL ? "NULL" : "of another graph");
    return ADJ_OK;
}

static adj_status walk_down(walk *w, adj_node *y, adj_node *dy, int n, adj_node *const x[])
{
    mark_leading(w, n, x);
    w->grad[y->id] = dy != NULL ? dy : adj_fill_like(y, 1);
    for (int id = (int)y->id; id >= 0 && w->graph->status == ADJ_OK; id--)
        if (w->grad[id] != NULL && w->leads[id] && w->graph->node[id]->n_in > 0)
            propagate(w, w->graph->node[id]);
    return w->graph->status;
}

static adj_status gradient(adj_node *y, adj_node *dy, int n, adj_node *const x[], adj_node *dx[])
{
    adj_graph *g = y->graph;
    const adj_allocator *a = &g->pool.allocator;
    if (g->status != ADJ_OK || check_arguments(g, y, dy, n, x) != ADJ_OK)
        return g->status;
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

adj_status adj_grad(adj_node *y, adj_node *dy, int n, adj_node *const x[], adj_node *dx[])
{
    for (int i = 0; i < n; i++)
        dx[i] = NULL;
    if (y == NULL) { /* the builder that gave NULL has said why */
        for (int i = 0; i < n; i++)
            if (x[i] != NULL)
                return x[i]->graph->status != ADJ_OK ? x[i]->graph->status : ADJ_EARG;
        return ADJ_EARG;
    }
    adj_role role = y->graph->role;
    y->graph->role = ADJ_ROLE_GRADIENT;
    adj_status status = gradient(y, dy, n, x, dx);
    y->graph->role = role;
    for (int i = 0; i < n && status != ADJ_OK; i++)
        dx[i] = NULL;
    return status;
}
