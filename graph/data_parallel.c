/* data_parallel.c - a training step of one process as the same step of many, each on its own part
 * of the batch: what updates read of this batch - gradients, statistics - is replaced by its mean
 * over the processes, so that all of them assign the same.
 *
 * What is made of gradients afterwards is copied: an optimiser's nodes have the role of updates,
 * but one that a user has written may be of forward nodes.
 *
 * Small values are packed: neighbours in the order in which they are computed become one vector,
 * which is reduced at once and cut again. */
#include "graph.h"

static const size_t usual_bucket = 1 << 20;

typedef struct {
    adj_graph *g;
    region p;
    int n; /* nodes of the step as it was */
    /* By id: it is a gradient, or made of one; it is made of an input that is no single number; it
     * is needed by a next value and made anew; it is read by such a one, or is one, and reduced. */
    char *has_gradient, *is_of_batch, *is_copied, *is_reduced;
    adj_node **image; /* by id: what updates read instead; NULL: the node itself */
    double factor;    /* 1 / processes */
} rewriting;

/* ---- which ones ---- */

static void trace(rewriting *w)
{
    for (int id = 0; id < w->n; id++) {
        const adj_node *n = w->g->node[id];
        w->has_gradient[id] = n->role == ADJ_ROLE_GRADIENT && n->n_in > 0;
        w->is_of_batch[id] = n->op == &adj_op_input && n->type.shape.rank > 0;
        for (int k = 0; k < n->n_in; k++) {
            w->has_gradient[id] |= w->has_gradient[n->in[k]->id];
            w->is_of_batch[id] |= w->is_of_batch[n->in[k]->id];
        }
    }
}

static void mark_read(rewriting *w, const adj_node *n)
{
    const int is_made =
        n->role == ADJ_ROLE_UPDATE || (n->role == ADJ_ROLE_FORWARD && w->has_gradient[n->id]);
    if (is_made && n->n_in > 0)
        w->is_copied[n->id] = 1;
    else if (w->is_of_batch[n->id] && adj_is_float(n->type.dtype))
        w->is_reduced[n->id] = 1;
}

static void mark(rewriting *w, const adj_updates *u)
{
    trace(w);
    for (int i = 0; i < u->n; i++)
        mark_read(w, u->list[i].next);
    for (int id = w->n - 1; id >= 0; id--)
        for (int k = 0; w->is_copied[id] && k < w->g->node[id]->n_in; k++)
            mark_read(w, w->g->node[id]->in[k]);
}

/* ---- means ---- */

static adj_shape flat_shape(const adj_node *n) { return (adj_shape){1, {node_elems(n)}}; }

static adj_node *mean_of(const rewriting *w, adj_node *x)
{
    return adj_scale(adj_all_reduce(x, ADJ_REDUCE_SUM), w->factor);
}

/* Of several nodes of one type. */
static void reduce_packed(rewriting *w, int n, adj_node *const x[], adj_node *flat[])
{
    adj_shape begin = {1, {0}};
    for (int i = 0; i < n; i++)
        flat[i] = adj_reshape(x[i], flat_shape(x[i]));
    adj_node *all = mean_of(w, adj_concat(n, flat, 0));
    for (int i = 0; i < n; i++) {
        adj_node *part = adj_slice(all, begin, flat_shape(x[i]));
        w->image[x[i]->id] = adj_reshape(part, x[i]->type.shape);
        begin.dim[0] += node_elems(x[i]);
    }
}

static void reduce_bucket(rewriting *w, int n, adj_node *const x[], adj_node *flat[])
{
    if (n == 1)
        w->image[x[0]->id] = mean_of(w, x[0]);
    else if (n > 1)
        reduce_packed(w, n, x, flat);
}

static adj_status reduce_all(rewriting *w, size_t max_bytes)
{
    adj_node **x = region_alloc(&w->p, (size_t)w->n + 1, sizeof *x);
    adj_node **flat = region_alloc(&w->p, (size_t)w->n + 1, sizeof *flat);
    size_t bytes = 0;
    int n = 0;
    if (x == NULL || flat == NULL)
        return adj_fail(w->g, ADJ_ENOMEM, "adj_data_parallel: out of memory");
    for (int id = 0; id < w->n; id++) {
        adj_node *next = w->g->node[id];
        if (!w->is_reduced[id])
            continue;
        const size_t more = adj_type_bytes(next->type);
        if (n > 0 && (x[0]->type.dtype != next->type.dtype || bytes + more > max_bytes)) {
            reduce_bucket(w, n, x, flat);
            n = 0;
            bytes = 0;
        }
        x[n++] = next;
        bytes += more;
    }
    reduce_bucket(w, n, x, flat);
    return w->g->status;
}

/* ---- updates that read the means ---- */

static adj_node *image_of(const rewriting *w, adj_node *n)
{
    return w->image[n->id] != NULL ? w->image[n->id] : n;
}

static adj_status copy_updates(rewriting *w)
{
    for (int id = 0; id < w->n && w->g->status == ADJ_OK; id++) {
        const adj_node *n = w->g->node[id];
        if (!w->is_copied[id])
            continue;
        adj_node **in = region_alloc(&w->p, (size_t)n->n_in, sizeof *in);
        if (in == NULL)
            return adj_fail(w->g, ADJ_ENOMEM, "adj_data_parallel: out of memory");
        for (int k = 0; k < n->n_in; k++)
            in[k] = image_of(w, n->in[k]);
        w->image[id] = adj_node_new(w->g, n->op, n->n_in, in, n->attrs);
        if (n->name != NULL && w->image[id] != n)
            adj_label(w->image[id], n->name);
    }
    return w->g->status;
}

static adj_updates *rewrite(rewriting *w, const adj_updates *u, size_t bucket)
{
    mark(w, u);
    const adj_role role = adj_graph_set_role(w->g, ADJ_ROLE_UPDATE);
    adj_status status = reduce_all(w, bucket);
    if (status == ADJ_OK)
        status = copy_updates(w);
    adj_graph_set_role(w->g, role);
    adj_updates *made = status == ADJ_OK ? adj_updates_new(w->g) : NULL;
    for (int i = 0; made != NULL && i < u->n; i++)
        adj_updates_add(made, u->list[i].leaf, image_of(w, u->list[i].next));
    return w->g->status == ADJ_OK ? made : NULL;
}

adj_updates *adj_data_parallel(const adj_updates *u, int processes,
                               const adj_data_parallel_opts *options)
{
    if (u == NULL || u->graph->status != ADJ_OK)
        return NULL;
    adj_graph *g = u->graph;
    const size_t n = (size_t)g->n_node + 1;
    const size_t bucket =
        options != NULL && options->bucket_bytes > 0 ? options->bucket_bytes : usual_bucket;
    if (processes < 1) {
        adj_fail(g, ADJ_EARG,
                 "adj_data_parallel: processes is out of range (got %d, expected 1 or more)",
                 processes);
        return NULL;
    }
    rewriting w = {.g = g, .p.allocator = g->region.allocator, .n = g->n_node};
    w.factor = 1.0 / processes;
    w.has_gradient = region_alloc(&w.p, n, 1);
    w.is_of_batch = region_alloc(&w.p, n, 1);
    w.is_copied = region_alloc(&w.p, n, 1);
    w.is_reduced = region_alloc(&w.p, n, 1);
    w.image = region_alloc(&w.p, n, sizeof(adj_node *));
    adj_updates *made = NULL;
    if (w.has_gradient == NULL || w.is_of_batch == NULL || w.is_copied == NULL ||
        w.is_reduced == NULL || w.image == NULL)
        adj_fail(g, ADJ_ENOMEM, "adj_data_parallel: out of memory");
    else
        made = rewrite(&w, u, bucket);
    region_free(&w.p);
    return made;
}
