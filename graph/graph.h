/* graph.h - what the files of graph/ share: the graph's inside, memory pools, passes. */
#ifndef ADJ_GRAPH_H
#define ADJ_GRAPH_H

#include <stdarg.h>

#include "adjoint_ext.h"

/* ---- memory: a pool hands out zeroed pieces that are freed all at once ---- */

typedef struct pool_block pool_block;
typedef struct {
    adj_allocator allocator;
    pool_block *block; /* the newest first */
} pool;

void pool_free(pool *p);
/* Zeroed, 16-byte aligned; NULL when out of memory or when count * size overflows. */
void *pool_alloc(pool *p, size_t count, size_t size);
char *pool_string(pool *p, const char *s);

/* malloc and free. */
adj_allocator default_allocator(void);
/* Both functions are there. */
int allocator_is_whole(const adj_allocator *a);

/* ---- the graph ---- */

enum { MESSAGE = 512, MAX_ATTR = 1024 };

struct adj_updates {
    adj_graph *graph;
    int n, capacity;
    adj_node **leaf, **next;
};

struct adj_graph {
    pool pool;
    adj_status status;
    char message[MESSAGE];
    adj_graph_opts opts;
    int n_node, capacity;
    adj_node **node;
    uint32_t n_bucket;    /* a power of two, or 0 */
    uint32_t *bucket;     /* open addressing: node id + 1; 0: free */
    adj_role role;        /* of the nodes being created */
    int again;            /* the same */
    uint64_t outer_roles; /* those before adj_update_begin */
    adj_updates *noted;
};

static inline int64_t node_elems(const adj_node *n) { return adj_shape_elems(n->type.shape); }

/* Writes "format" into a message that holds none yet. */
void write_message(char message[MESSAGE], const char *format, va_list args);

/* ---- uses.c ---- */

/* needed[id] becomes 1 for every node that the roots need, themselves included. */
void mark_needed(const adj_graph *g, int n_root, const adj_node *const root[], char *needed);
/* Who reads each node, by id, among those that the roots need; in p's memory. NULL: none is left.
 */
adj_uses *find_uses(const adj_graph *g, int n_root, const adj_node *const root[], pool *p);

/* ---- passes: each rebuilds a private copy of a graph through a rule ---- */

typedef struct {
    adj_graph *to;
    adj_exec *exec;       /* whose graph it becomes */
    double loss_scale;    /* 1: none */
    char *scaled;         /* by id of what is rebuilt: its image is loss_scale times as large */
    const adj_uses *uses; /* by id of what is rebuilt */
    adj_node **image;     /* by the same: the node of `to` */
    /* recompute.c, by the same: the gradient reads a copy of it, so many nodes long; the copy. */
    char *again;
    adj_node **copy;
    char *stays; /* fold.c, by the same: follows from parameters alone */
} rewriting;

/* The node of w->to that stands for n, whose operands' images are in. */
typedef adj_node *(*rewrite_rule)(rewriting *w, const adj_node *n, adj_node *const in[]);
adj_node *rule_copy(rewriting *w, const adj_node *n, adj_node *const in[]);
adj_node *rule_simplify(rewriting *w, const adj_node *n, adj_node *const in[]);
adj_node *rule_rearrange(rewriting *w, const adj_node *n, adj_node *const in[]);
/* remember.c */
adj_node *rule_remember(rewriting *w, const adj_node *n, adj_node *const in[]);
/* mixed.c: mixed precision; images may be of a half type where n is f32, and scaled. */
adj_node *rule_bf16(rewriting *w, const adj_node *n, adj_node *const in[]);
adj_node *rule_f16(rewriting *w, const adj_node *n, adj_node *const in[]);
/* fold.c. The rule requires what find_stays finds. */
adj_node *rule_fold(rewriting *w, const adj_node *n, adj_node *const in[]);
adj_status find_stays(rewriting *w, const adj_graph *from);
int has_folds(const adj_graph *g);
/* n's image in n's type and size. */
adj_node *as_built(const rewriting *w, const adj_node *n, adj_node *image);
/* half_in_f32.c: f16 and bf16 in f32 kernels, where only those are fast. */
adj_node *rule_half_in_f32(rewriting *w, const adj_node *n, adj_node *const in[]);

/* recompute.c: gradient nodes read copies of what is cheap to compute again. find_repeatable says
 * of what, and comes first. */
adj_node *rule_recompute(rewriting *w, const adj_node *n, adj_node *const in[]);
adj_status find_repeatable(const adj_graph *from, int n_root, const adj_node *const root[],
                           rewriting *w);

/* Rebuilds into w->to every node of `from` that the roots need. image[id of from] is its node
 * there, NULL for a dead one. Keeps: order, names, roles. Returns w->to's status. */
adj_status rewrite(const adj_graph *from, int n_root, const adj_node *const root[], rewriting *w,
                   adj_node *image[], rewrite_rule rule);
/* The executor's pipeline: the simplified copy of what the roots need as a graph of its own, in the
 * precision that opts ask for; traced to opts->trace. root[]
 * becomes the roots' images and image[id of from] says where each node went (NULL: dead). *out is
 * to be freed by the caller in every case; its message says what failed (NULL when out of memory),
 * unless the executor's does. */
adj_status run_passes(adj_exec *e, const adj_graph *from, int n_root, const adj_node *root[],
                      adj_node *image[], const adj_exec_opts *opts, const adj_allocator *allocator,
                      adj_graph **out);
/* Operands come first, belong to the graph and have the types that inference gives. Requires:
 * nothing. */
adj_status check_graph(adj_graph *g);

/* One node on one line, as adj_print has it. */
void print_node(FILE *f, const adj_node *n);
/* " \"name\"", what would end the line or the quotes escaped. */
void print_name(FILE *f, const char *name);

#endif
