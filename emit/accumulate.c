/* accumulate.c - splits a training step in two: one adds what the updates read of a batch,
 * gradients and statistics, to sums; the other updates from their means over the batches. */
#include <stdlib.h>

#include "adjoint_emit.h"
#include "graph/graph.h"

typedef struct {
    adj_graph *g;
    int n; /* nodes of the step as it was */
    /* By id. of_batch: it is computed from an input that is not a scalar. is_copied: a next value
     * is computed from it, and it is computed from gradients or statistics. is_summed: it is of the
     * batch, and a copied node reads it or it is a next value. is_read: a sum or a copied node
     * depends on it. */
    char *of_batch, *has_gradient, *is_copied, *is_summed, *is_read;
    adj_node **image; /* by id: what the updates read instead; NULL: the node itself */
    adj_updates *accumulate, *apply;
} splitting;

static void trace(splitting *s)
{
    for (int id = 0; id < s->n; id++) {
        const adj_node *n = s->g->node[id];
        s->has_gradient[id] = n->role == ADJ_ROLE_GRADIENT && n->n_in > 0;
        s->of_batch[id] = n->op == &adj_op_input && n->type.shape.rank > 0;
        for (int k = 0; k < n->n_in; k++) {
            s->has_gradient[id] |= s->has_gradient[n->in[k]->id];
            s->of_batch[id] |= s->of_batch[n->in[k]->id];
        }
    }
}

static void mark_read(splitting *s, const adj_node *n)
{
    const int is_made =
        n->role == ADJ_ROLE_UPDATE || (n->role == ADJ_ROLE_FORWARD && s->has_gradient[n->id]);
    if (is_made && n->n_in > 0 && s->of_batch[n->id])
        s->is_copied[n->id] = 1;
    else
        s->is_summed[n->id] = s->of_batch[n->id];
}

static void mark(splitting *s, const adj_updates *u)
{
    trace(s);
    for (int i = 0; i < u->n; i++)
        mark_read(s, u->list[i].next);
    for (int id = s->n - 1; id >= 0; id--)
        for (int k = 0; s->is_copied[id] && k < s->g->node[id]->n_in; k++)
            mark_read(s, s->g->node[id]->in[k]);
    for (int id = s->n - 1; id >= 0; id--) {
        s->is_read[id] |= s->is_summed[id];
        for (int k = 0; s->is_read[id] && k < s->g->node[id]->n_in; k++)
            s->is_read[s->g->node[id]->in[k]->id] = 1;
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
        if (!s->is_summed[id])
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
        if (!s->is_copied[id])
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
        const int counts_batches = s->is_read[leaf->id] && !s->of_batch[next->id];
        adj_updates_add(counts_batches ? s->accumulate : s->apply, leaf, image_of(s, next));
    }
    return s->g->status;
}

static adj_status split(splitting *s, const adj_updates *u)
{
    mark(s, u);
    const adj_role role = adj_graph_set_role(s->g, ADJ_ROLE_UPDATE);
    adj_status status = add_sums(s);
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
    char *flags = calloc(5, n);
    splitting s = {.g = g,
                   .n = g->n_node,
                   .image = calloc(n, sizeof *s.image),
                   .accumulate = adj_updates_new(g),
                   .apply = adj_updates_new(g)};
    if (flags == NULL || s.image == NULL)
        adj_fail(g, ADJ_ENOMEM, "adj_emit_accumulation: out of memory");
    else {
        s.of_batch = flags;
        s.has_gradient = flags + n;
        s.is_copied = flags + 2 * n;
        s.is_summed = flags + 3 * n;
        s.is_read = flags + 4 * n;
        (void)split(&s, u);
    }
    free((void *)s.image);
    free(flags);
    *accumulate = g->status == ADJ_OK ? s.accumulate : NULL;
    *apply = g->status == ADJ_OK ? s.apply : NULL;
    return g->status;
}
