/* rewrite.c - passes: a graph is never edited, it is rebuilt into another one through a rule.
 *
 * Only what the roots need is rebuilt, and equal nodes are interned on the way: dead code and
 * common subexpressions fall out of every pass. */
#include <string.h>

#include "exec.h"

adj_node *rule_copy(rewriting *w, const adj_node *n, adj_node *const in[])
{
    return adj_node_new(w->to, n->op, n->n_in, in, n->attrs);
}

adj_node *rule_simplify(rewriting *w, const adj_node *n, adj_node *const in[])
{
    adj_node *simpler = n->op->simplify != NULL ? n->op->simplify(n, in) : NULL;
    return simpler != NULL ? simpler : rule_copy(w, n, in);
}

adj_node *rule_rearrange(rewriting *w, const adj_node *n, adj_node *const in[])
{
    adj_node *better = n->op->rearrange != NULL ? n->op->rearrange(n, in, w->uses) : NULL;
    return better != NULL ? better : rule_copy(w, n, in);
}

adj_status rewrite(const adj_graph *from, int n_root, const adj_node *const root[], rewriting *w,
                   adj_node *image[], rewrite_rule rule)
{
    adj_graph *to = w->to;
    int most = 1;
    for (int id = 0; id < from->n_node; id++)
        most = from->node[id]->n_in > most ? from->node[id]->n_in : most;
    char *needed = adj_graph_alloc(to, (size_t)from->n_node);
    adj_node **in = adj_graph_alloc(to, (size_t)most * sizeof(adj_node *));
    if (needed == NULL || in == NULL)
        return to->status;
    mark_needed(from, n_root, root, needed);
    for (int id = 0; id < from->n_node; id++) {
        const adj_node *n = from->node[id];
        image[id] = NULL;
        if (!needed[id])
            continue;
        for (int k = 0; k < n->n_in; k++)
            in[k] = image[n->in[k]->id];
        to->role = n->role;
        to->again = n->again;
        if ((image[id] = adj_label(rule(w, n, in), n->name)) == NULL)
            return to->status;
    }
    return to->status;
}

typedef struct {
    const char *name;
    rewrite_rule rule;
} pass;

/* copy drops what the passes before it have left unused. */
static const pass pipeline[] = {{"simplify", rule_simplify},
                                {"fold", rule_fold},
                                {"rearrange", rule_rearrange},
                                {"mixed precision", rule_bf16},
                                {"mixed precision", rule_f16},
                                {"half types in f32 kernels", rule_half_in_f32},
                                {"remember", rule_remember},
                                {"recompute", rule_recompute},
                                {"copy", rule_copy}};

enum { LOSS_SCALE = 1024 };

static int has_half(const adj_graph *g)
{
    for (int id = 0; id < g->n_node; id++)
        if (g->node[id]->type.dtype == ADJ_F16 || g->node[id]->type.dtype == ADJ_BF16)
            return 1;
    return 0;
}

/* The last backend alone, which is the reference, computes what the graph says. */
static int is_wanted(const pass *p, const adj_exec *e, const adj_graph *g, const adj_exec_opts *o)
{
    int regroups = p->rule == rule_fold || p->rule == rule_rearrange || p->rule == rule_remember;
    if (regroups && o->no_fusion)
        return 0;
    if (p->rule == rule_fold)
        return e->preferred != e->fallback && adj_updates_size(o->updates) == 0 && has_folds(g);
    if (p->rule == rule_rearrange)
        return e->preferred != e->fallback;
    if (p->rule == rule_bf16 || p->rule == rule_f16)
        return o->precision == (p->rule == rule_f16 ? ADJ_PRECISION_F16 : ADJ_PRECISION_BF16);
    if (p->rule == rule_recompute)
        return o->recompute != 0;
    return p->rule != rule_half_in_f32 || has_half(g);
}

/* Rebuilds `from` into `to`; roots and images are replaced by theirs. */
static adj_status run_pass(const pass *p, const adj_graph *from, int n_root, const adj_node *root[],
                           int n_image, adj_node *image[], rewriting *w)
{
    adj_graph *to = w->to;
    adj_node **step = adj_graph_alloc(to, (size_t)from->n_node * sizeof(adj_node *));
    w->scaled = adj_graph_alloc(to, (size_t)from->n_node);
    if (step == NULL || w->scaled == NULL)
        return to->status;
    if ((w->uses = find_uses(from, n_root, root, &to->pool)) == NULL)
        return ADJ_ENOMEM;
    w->image = step;
    if ((p->rule == rule_recompute && find_repeatable(from, n_root, root, w) != ADJ_OK) ||
        (p->rule == rule_fold && find_stays(w, from) != ADJ_OK) ||
        rewrite(from, n_root, root, w, step, p->rule) != ADJ_OK)
        return to->status;
    for (int i = 0; i < n_root; i++) { /* a root keeps its type */
        step[root[i]->id] = as_built(w, root[i], step[root[i]->id]);
        w->scaled[root[i]->id] = 0; /* it may be a root again */
        root[i] = step[root[i]->id];
        if (root[i] == NULL)
            return to->status;
    }
    for (int i = 0; i < n_image; i++)
        image[i] = image[i] != NULL ? step[image[i]->id] : NULL;
    return check_graph(to);
}

adj_status run_passes(adj_exec *e, const adj_graph *from, int n_root, const adj_node *root[],
                      adj_node *image[], const adj_exec_opts *opts, const adj_allocator *allocator,
                      adj_graph **out)
{
    adj_graph_opts graph_opts = {.allocator = allocator};
    const adj_graph *g = from;
    int n_image = from->n_node;
    *out = NULL;
    for (int id = 0; id < n_image; id++)
        image[id] = from->node[id];
    for (size_t i = 0; i < sizeof pipeline / sizeof *pipeline; i++) {
        if (!is_wanted(&pipeline[i], e, g, opts))
            continue;
        adj_graph *to = adj_graph_new_with(ADJ_VERSION, &graph_opts);
        if (to == NULL)
            return ADJ_ENOMEM;
        rewriting w = {.to = to, .exec = e, .loss_scale = 1};
        if (pipeline[i].rule == rule_f16)
            w.loss_scale = opts->loss_scale > 0 ? opts->loss_scale : LOSS_SCALE;
        adj_status status = run_pass(&pipeline[i], g, n_root, root, n_image, image, &w);
        adj_graph_free(*out);
        *out = to;
        g = to;
        if (status != ADJ_OK)
            return status;
        if (opts->trace != NULL) {
            fprintf(opts->trace, "after %s:\n", pipeline[i].name);
            adj_print(opts->trace, n_root, (adj_node *const *)root);
        }
    }
    return ADJ_OK;
}
