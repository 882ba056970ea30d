/* pipeline.c - the list of passes, and the loop that runs them in order. A graph is never edited,
 * but rebuilt into another one through the pass's rule.
 *
 * Only nodes that the roots need are rebuilt, and equal nodes are interned on the way: every
 * pass removes dead code and common subexpressions. */
#include <string.h>

#include "passes.h"

static const pass *const pipeline[] = {
    &pass_channels_last,      /* where there are NCHW images */
    &pass_simplify,           /* always */
    &pass_fold,               /* without updates: inference */
    &pass_rewrite_with_users, /* unless only the reference computes */
    &pass_mixed_precision,    /* if the options name a precision */
    &pass_half_in_f32,        /* where there are half types */
    &pass_save_for_backward,  /* in training */
    &pass_recompute,          /* in training, where much is saved or the options request it */
    &pass_split_all_reduce,   /* with several ranks */
    &pass_copy,               /* always: drops what is no longer read */
};

adj_node *rule_copy(rewriting *w, const adj_node *n, adj_node *in[])
{
    return adj_node_new(w->to, n->op, n->n_in, in, n->attrs);
}

/* Rebuilds every node that the roots need. Keeps: order, names, roles. Returns w->to's status. */
static adj_status rewrite(rewriting *w, rewrite_rule *rule)
{
    const adj_graph *from = w->from;
    adj_graph *to = w->to;
    adj_node **in = adj_graph_alloc(to, (size_t)max_operands(from) * sizeof(adj_node *));
    if (in == NULL)
        return to->status;
    for (int id = 0; id < from->n_node; id++) {
        const adj_node *n = from->node[id];
        if (!is_needed(&w->uses[id]))
            continue;
        for (int k = 0; k < n->n_in; k++)
            in[k] = w->image[n->in[k]->id];
        to->role = n->role;
        to->clone = n->clone;
        if ((w->image[id] = adj_label(rule(w, n, in), n->name)) == NULL)
            return to->status;
    }
    return to->status;
}

/* ---- the verifier, which runs after each pass ---- */

/* Checks that operands precede the node, belong to the graph and have the types that inference
 * gives, which only a bug in a pass can break. */
static adj_status verify_node(adj_graph *g, const adj_node *n, int id)
{
    _Alignas(16) char attrs[MAX_ATTR];
    adj_type type = {0};
    if (n->graph != g || n->id != (uint32_t)id)
        return adj_fail(g, ADJ_EARG, "verify: node id does not match its index (%d)", id);
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i]->graph != g || n->in[i]->id >= n->id)
            return adj_fail(g, ADJ_EARG, "verify: operand %d of node %d (%s) comes after it", i, id,
                            n->op->name);
    memcpy(attrs, n->attrs, adj_attr_size(n->op));
    adj_status status = infer_type(n, attrs, &type);
    if (status != ADJ_OK)
        return status;
    if (!is_same_type(type, n->type))
        return adj_fail(g, ADJ_ESHAPE,
                        "verify: node %d (%s) changed its type (got %s, expected %s)", id,
                        n->op->name, adj_shape_text(type.shape).s, adj_shape_text(n->type.shape).s);
    return ADJ_OK;
}

/* ---- the passes ---- */

/* Rebuilds w->from into w->to and replaces roots and images by theirs. */
static adj_status run_pass(const pass *p, const adj_node *root[], int n_image, adj_node *image[],
                           rewriting *w)
{
    adj_graph *to = w->to;
    if ((w->image = adj_graph_alloc(to, (size_t)w->from->n_node * sizeof(adj_node *))) == NULL)
        return to->status;
    if ((w->uses = find_uses(w->from, w->n_root, root, &to->region)) == NULL)
        return ADJ_ENOMEM;
    if ((p->prepare != NULL && p->prepare(w) != ADJ_OK) || rewrite(w, p->rule) != ADJ_OK)
        return to->status;
    for (int i = 0; i < w->n_root; i++) {
        adj_node **to_root = &w->image[root[i]->id];
        if (p->as_built != NULL)
            *to_root = p->as_built(w, root[i], *to_root);
        if (*to_root == NULL)
            return to->status;
        root[i] = *to_root;
    }
    for (int i = 0; i < n_image; i++)
        image[i] = image[i] != NULL ? w->image[image[i]->id] : NULL;
    for (int id = 0; id < to->n_node && to->status == ADJ_OK; id++)
        verify_node(to, to->node[id], id);
    return to->status;
}

adj_status run_passes(const pass_target *target, const adj_graph *from, int n_root,
                      const adj_node *root[], adj_node *image[], const adj_allocator *allocator,
                      adj_graph **out)
{
    adj_graph_opts graph_opts = {.allocator = allocator};
    const adj_graph *g = from;
    int n_image = from->n_node;
    FILE *trace = target->opts->debug->trace;
    *out = NULL;
    for (int id = 0; id < n_image; id++)
        image[id] = from->node[id];
    for (size_t i = 0; i < sizeof pipeline / sizeof *pipeline; i++) {
        const pass *p = pipeline[i];
        if ((p->is_wanted != NULL && !p->is_wanted(target, g)) ||
            (target->opts->debug->no_passes && p != &pass_copy))
            continue;
        adj_graph *to = adj_graph_new_with(ADJ_VERSION, &graph_opts);
        if (to == NULL)
            return ADJ_ENOMEM;
        to->is_unmerged = from->is_unmerged;
        rewriting w = {.target = target, .from = g, .n_root = n_root, .root = root, .to = to};
        adj_status status = run_pass(p, root, n_image, image, &w);
        adj_graph_free(*out);
        *out = to;
        g = to;
        if (status != ADJ_OK)
            return status;
        if (trace != NULL) {
            fprintf(trace, "after %s:\n", p->name);
            adj_print(trace, n_root, (adj_node *const *)root);
        }
        if (target->after_pass != NULL)
            target->after_pass(target->user, p->name, g, image);
    }
    return ADJ_OK;
}
