/* passes.h - declarations shared by the passes. A pass rebuilds a private copy of a graph into
 * another one through a rule; pipeline.c lists the passes. */
#ifndef ADJ_PASSES_H
#define ADJ_PASSES_H

#include "graph/graph.h"

/* The options that the graph is rebuilt for, and queries to the backends that will run it. */
typedef struct {
    const adj_exec_opts *opts; /* debug is not NULL */
    /* Called with user, the pass's name, the graph that it left and the images there; or NULL. */
    void (*after_pass)(void *user, const char *pass, const adj_graph *g, adj_node *const image[]);
    void *user;
    int params_vary;    /* parameters change from run to run, though no update assigns them */
    int reference_only; /* only the last backend, the reference, computes */
    /* True if a backend before the reference supports op in some form. */
    int (*has_backend)(void *backends, const adj_op *op);
    /* True if a backend before the reference has a kernel for n alone. */
    int (*has_non_reference_kernel)(void *backends, const adj_node *n);
    void *backends;
} pass_target;

typedef struct { /* the nodes of `from` that the roots need, and their images in `to` */
    const pass_target *target;
    const adj_graph *from;
    int n_root;
    const adj_node *const *root;
    const adj_uses *uses; /* by id of `from` */
    adj_graph *to;
    adj_node **image; /* by id of `from`: its node in `to`; NULL if dead */
    void *state;      /* state of the pass */
} rewriting;

/* Returns the node of w->to that replaces n; in: the images of n's operands, which the rule may
 * replace. NULL if out of memory. */
typedef adj_node *rewrite_rule(rewriting *w, const adj_node *n, adj_node *in[]);

typedef struct {
    const char *name; /* as a trace prints it */
    /* NULL if always wanted. */
    int (*is_wanted)(const pass_target *target, const adj_graph *g);
    /* Computes what the rule needs from the whole graph into w->state, in w->to's memory. NULL
     * if nothing. */
    adj_status (*prepare)(rewriting *w);
    rewrite_rule *rule;
    /* Converts a root's image back to the root's type, if the rule changes types. NULL if it
     * does not. */
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

/* Copies what the roots need into a graph of its own, simplified, in the precision of the
 * options; traced to opts->debug->trace. root[] becomes the roots' images, and image[id of from]
 * each node's image (NULL if dead). The caller frees *out in every case. Its message explains a
 * failure (*out is NULL if out of memory), unless the owner of the backends has one. */
adj_status run_passes(const pass_target *target, const adj_graph *from, int n_root,
                      const adj_node *root[], adj_node *image[], const adj_allocator *allocator,
                      adj_graph **out);

#endif
