/* accumulate.c - splits a training step in two: one adds what the updates read of a batch,
 * gradients and statistics, to sums; the other applies the updates from their means over the
 * batches. */
#include <stdlib.h>

#include "adjoint_emit.h"
#include "graph/graph.h"

typedef struct {
    adj_graph *g;
    int n; /* nodes of the step as it was */
    adj_update_nodes nodes;
    char *feeds_sum;  /* by id: a sum depends on it */
    adj_node **image; /* by id: what the updates read instead; NULL: the node itself */
    adj_updates *accumulate, *apply;
} splitting;

/* True if the node's value for a batch is added to a sum. */
static int is_summed(const splitting *s, int id)
{
    return s->nodes.is_read[id] && s->nodes.of_batch[id];
}

static void mark_feeding(splitting *s)
{
    for (int id = s->n - 1; id >= 0; id--) {
        s->feeds_sum[id] |= is_summed(s, id);
        for (int k = 0; s->feeds_sum[id] && k < s->g->node[id]->n_in; k++)
            s->feeds_sum[s->g->node[id]->in[k]->id] = 1;
    }
}

/* Adds a state that accumulate adds x to, and that apply sets to 0. Returns it. */
static adj_node *add_sum(splitting *s, const char *name, adj_node *x)
{
    adj_node *sum = adj_state(s->g, name, x->type.dtype, x->type.shape, (adj_init){0});
    adj_updates_add(s->accumulate, sum, adj_add(sum, x));
    adj_updates_add(s->apply, sum, adj_fill(s->g, x->type.dtype, x->type.shape, 0));
    return sum;
}

static adj_status add_sums(splitting *s)
{
    adj_node *one = adj_fill(s->g, ADJ_F32, (adj_shape){0}, 1);
    adj_node *count = add_sum(s, "accumulated/count", one);
    adj_node *divisor = adj_maximum(count, one);
    for (int id = 0, number = 0; id < s->n && s->g->status == ADJ_OK; id++) {
        char name[40];
        adj_node *x = s->g->node[id];
        if (!is_summed(s, id))
            continue;
        snprintf(name, sizeof name, "accumulated/sum%d", ++number);
        if (x->type.dtype != ADJ_F32)
            return adj_fail(s->g, ADJ_EDTYPE,
                            "adj_emit_accumulation: a value to sum is %s, expected f32",
                            adj_dtype_name(x->type.dtype));
        s->image[id] = adj_div(add_sum(s, name, x), divisor);
    }
    return s->g->status;
}

static adj_node *image_of(const splitting *s, adj_node *n)
{
    return s->image[n->id] != NULL ? s->image[n->id] : n;
}

static adj_status copy_updates(splitting *s)
{
    for (int id = 0; id < s->n && s->g->status == ADJ_OK; id++) {
        const adj_node *n = s->g->node[id];
        if (!s->nodes.is_copied[id])
            continue;
        adj_node **in = malloc(((size_t)n->n_in + 1) * sizeof *in);
        if (in == NULL)
            return adj_fail(s->g, ADJ_ENOMEM, "adj_emit_accumulation: out of memory");
        for (int k = 0; k < n->n_in; k++)
            in[k] = image_of(s, n->in[k]);
        s->image[id] = adj_node_new(s->g, n->op, n->n_in, in, n->attrs);
        free((void *)in);
    }
    return s->g->status;
}

/* A counter that the batch's values depend on and that does not depend on the batch, such as a
 * dropout's, counts batches. */
static adj_status add_updates(splitting *s, const adj_updates *u)
{
    for (int i = 0; i < u->n; i++) {
        adj_node *leaf = u->list[i].leaf, *next = u->list[i].next;
        const int counts_batches = s->feeds_sum[leaf->id] && !s->nodes.of_batch[next->id];
        adj_updates_add(counts_batches ? s->accumulate : s->apply, leaf, image_of(s, next));
    }
    return s->g->status;
}

static adj_status split(splitting *s, const adj_updates *u)
{
    adj_status status = adj_find_update_nodes(u, &s->nodes);
    if (status != ADJ_OK)
        return status;
    mark_feeding(s);
    const adj_role role = adj_graph_set_role(s->g, ADJ_ROLE_UPDATE);
    status = add_sums(s);
    if (status == ADJ_OK)
        status = copy_updates(s);
    adj_graph_set_role(s->g, role);
    return status == ADJ_OK ? add_updates(s, u) : status;
}

adj_status adj_emit_accumulation(const adj_updates *u, adj_updates **accumulate,
                                 adj_updates **apply)
{
    if (u == NULL || accumulate == NULL || apply == NULL)
        return ADJ_EARG;
    adj_graph *g = u->graph;
    if (g->status != ADJ_OK)
        return g->status;
    const size_t n = (size_t)g->n_node + 1;
    splitting s = {.g = g,
                   .n = g->n_node,
                   .feeds_sum = calloc(n, 1),
                   .image = calloc(n, sizeof *s.image),
                   .accumulate = adj_updates_new(g),
                   .apply = adj_updates_new(g)};
    if (s.feeds_sum == NULL || s.image == NULL)
        adj_fail(g, ADJ_ENOMEM, "adj_emit_accumulation: out of memory");
    else
        (void)split(&s, u);
    free((void *)s.image);
    free(s.feeds_sum);
    *accumulate = g->status == ADJ_OK ? s.accumulate : NULL;
    *apply = g->status == ADJ_OK ? s.apply : NULL;
    return g->status;
}
