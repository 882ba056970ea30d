/* evaluation.c - the evaluation form of a net that was built for training: a copy of the nodes that
 * depend on what only training computes. Nodes that do not are shared. */
#include "graph.h"

/* Returns the batch statistics that a layer's update adds to running ones, or NULL: the update is
 * ema(running, mul(stats, factor)). */
static const adj_node *batch_stats(const adj_node *next)
{
    const adj_node *n = next;
    while (n->op != &adj_op_batch_norm_stats && n->n_in > 0)
        n = n->in[n->op == &adj_op_ema ? 1 : 0];
    return n->op == &adj_op_batch_norm_stats ? n : NULL;
}

/* Returns a copy of n over the images of its operands; n itself if they are its operands. in: room
 * for the operands. */
static adj_node *copy_over(adj_node *n, adj_node *const image[], adj_node **in)
{
    adj_graph *g = n->graph;
    int is_same = 1;
    for (int k = 0; k < n->n_in; k++) {
        in[k] = image[n->in[k]->id];
        is_same &= in[k] == n->in[k];
    }
    if (is_same)
        return n;
    const adj_role role = adj_graph_set_role(g, n->role);
    adj_node *copy = adj_node_new(g, n->op, n->n_in, in, n->attrs);
    adj_graph_set_role(g, role);
    return n->name != NULL ? adj_label(copy, n->name) : copy;
}

/* Fills image for the nodes up to y that y depends on. */
static void copy_nodes(const adj_node *y, adj_node **image, char *needed, adj_node **in)
{
    adj_graph *g = y->graph;
    mark_needed(g, 1, &y, needed);
    for (int i = 0; i < adj_updates_count(g->layer_updates); i++) {
        const adj_node *stats = batch_stats(g->layer_updates->list[i].next);
        if (stats != NULL && stats->id <= y->id)
            image[stats->id] = g->layer_updates->list[i].leaf;
    }
    for (int id = 0; id <= (int)y->id && g->status == ADJ_OK; id++) {
        adj_node *n = g->node[id];
        if (!needed[id] || image[id] != NULL)
            continue;
        image[id] = n->op == &adj_op_dropout ? image[n->in[0]->id] : copy_over(n, image, in);
    }
}

adj_node *adj_evaluation(adj_node *y)
{
    if (y == NULL)
        return NULL;
    adj_graph *g = y->graph;
    region p = {.allocator = g->region.allocator};
    const size_t n = (size_t)g->n_node;
    adj_node **image = region_alloc(&p, n, sizeof *image);
    adj_node **in = region_alloc(&p, (size_t)max_operands(g), sizeof *in);
    char *needed = region_alloc(&p, n, 1);
    adj_node *result = NULL;
    if (image == NULL || in == NULL || needed == NULL)
        adj_fail(g, ADJ_ENOMEM, "adj_evaluation: out of memory");
    else {
        copy_nodes(y, image, needed, in);
        result = g->status == ADJ_OK ? image[y->id] : NULL;
    }
    region_free(&p);
    return result;
}
