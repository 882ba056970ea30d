/* passes.h - what the passes share. A pass rebuilds a private copy of a graph into another one
 * through a rule; pipeline.c has the list of them. */
#ifndef ADJ_PASSES_H
#define ADJ_PASSES_H

#include "graph/graph.h"

/* For what the graph is rebuilt, and how to query the backends that will run it. */
typedef struct {
    const adj_exec_opts *opts;
    int reference_only; /* only the last backend, the reference, computes anything */
    /* Is a backend before the reference queried for op at all? */
    int (*has_backend)(void *backends, const adj_op *op);
    /* Has a backend before the reference a kernel for n alone? */
    int (*has_non_reference_kernel)(void *backends, const adj_node *n);
    void *backends;
} pass_target;

typedef struct { /* what the roots need of a graph, and what it becomes */
    const pass_target *target;
    const adj_graph *from;
    int n_root;
    const adj_node *const *root;
    const adj_uses *uses; /* by id of `from` */
    adj_graph *to;
    adj_node **image; /* by id of `from`: the node of `to`; NULL for a dead one */
    void *state;      /* the pass's own */
} rewriting;

/* The node of w->to that stands for n, whose operands' images are in; NULL: out of memory. */
typedef adj_node *rewrite_rule(rewriting *w, const adj_node *n, adj_node *const in[]);

typedef struct {
    const char *name; /* in a trace */
    /* NULL: always. */
    int (*is_wanted)(const pass_target *target, const adj_graph *g);
    /* What the rule has to know of the whole graph, into w->state, in w->to's memory. NULL:
     * nothing. */
    adj_status (*prepare)(rewriting *w);
    rewrite_rule *rule;
    /* A root's image as the root was built, where the rule changes types. NULL: the image. */
    adj_node *(*as_built)(rewriting *w, const adj_node *root, adj_node *image);
} pass;

extern const pass pass_simplify, pass_channels_last, pass_fold, pass_rewrite_with_users,
    pass_mixed_precision, pass_half_in_f32, pass_save_for_backward, pass_recompute,
    pass_split_all_reduce, pass_copy;

rewrite_rule rule_copy;
static inline int has_kernel(const rewriting *w, const adj_node *n)
{
    return w->target->has_non_reference_kernel(w->target->backends, n);
}

/* Rebuilds every node that the roots need. Keeps: order, names, roles. Returns w->to's status. */
adj_status rewrite(rewriting *w, rewrite_rule *rule);

/* The simplified copy of what the roots need as a graph of its own, in the precision that the
 * options ask for; traced to opts->trace. root[] becomes the roots' images and image[id of from]
 * says where each node went (NULL: dead). *out is to be freed by the caller in every case; its
 * message says what failed (NULL when out of memory), unless the backends' owner has one. */
adj_status run_passes(const pass_target *target, const adj_graph *from, int n_root,
                      const adj_node *root[], adj_node *image[], const adj_allocator *allocator,
                      adj_graph **out);

#endif
