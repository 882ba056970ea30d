/* graph.h - declarations shared within graph/: the graph's struct, regions of memory, the users
 * of nodes. */
#ifndef ADJ_GRAPH_H
#define ADJ_GRAPH_H

#include <stdarg.h>

#include "op.h"

/* ---- memory: a region hands out zeroed blocks that are freed all at once ---- */

typedef struct region_block region_block;
typedef struct {
    adj_allocator allocator;
    region_block *block; /* the newest first */
} region;

void region_free(region *p);
/* Returns zeroed, 16-byte aligned memory; NULL if out of memory or if count * size overflows. */
void *region_alloc(region *p, size_t count, size_t size);
char *region_string(region *p, const char *s);
/* Returns the list with room for one element more than n: itself, or a copy of twice the
 * capacity. NULL if out of memory; the capacity is then unchanged. */
void *region_grow(region *p, void *list, int n, int *capacity, size_t size);

/* Returns the allocator that calls malloc and free. */
adj_allocator default_allocator(void);
/* Sets *a to the given allocator unless that is NULL. Returns 0 and leaves *a if one of its
 * functions is NULL. */
int take_allocator(adj_allocator *a, const adj_allocator *given);

/* ---- the graph ---- */

enum { MAX_ATTR = 1024 };

struct adj_updates {
    adj_graph *graph;
    int n, capacity;
    int n_shard, n_image; /* by adj_data_parallel; [n_shard][n_image]: by id, NULL: itself */
    adj_node ***image;
    struct assignment {
        adj_node *leaf, *next;
    } * list;
};

struct adj_graph {
    region region;
    adj_status status;
    char message[ADJ_MESSAGE];
    adj_graph_opts opts;
    int n_node, capacity;
    adj_node **node;
    uint32_t n_bucket;                    /* a power of two, or 0 */
    uint32_t *bucket;                     /* open addressing: node id + 1; 0: free */
    uint32_t n_name;                      /* distinct node names */
    uint32_t n_name_bucket, *name_bucket; /* hash table by name */
    adj_role role;                        /* role of the nodes being created */
    const char *layer; /* name of the layer being built, for messages; NULL if none */
    int clone;         /* clone number of the nodes being created */
    int is_unmerged;   /* every node is a new one, for checks of interning */
    adj_updates *layer_updates;
};

/* True if bit k of a mask of operands is set. The last bit stands for all further operands too. */
static inline int has_operand_bit(unsigned mask, int k) { return mask >> (k < 31 ? k : 31) & 1; }
/* True if operand k has the half type where the op is computed in it. */
static inline int has_half_operand(const adj_op *op, int k)
{
    return !(op->flags & ADJ_OP_HALF_IMAGES) || has_operand_bit(op->images, k);
}
static inline int is_same_type(adj_type a, adj_type b)
{
    return a.dtype == b.dtype && adj_shape_equal(a.shape, b.shape);
}
/* Returns the node that owns n's memory: n itself, unless it is a view. */
static inline const adj_node *viewed_node(const adj_node *n)
{
    while (n->n_in > 0 && (n->op->flags & ADJ_OP_VIEW))
        n = n->in[0];
    return n;
}
static inline int64_t node_elems(const adj_node *n) { return adj_shape_elems(n->type.shape); }

/* True if that version's structs are laid out as this library's. */
int is_known_version(int version);
/* "version 0.1.0, expected 0.3.0" */
adj_text version_difference(int got);

/* ---- uses.c ---- */

/* Sets needed[id] to 1 for every node that the roots need, themselves included. */
void mark_needed(const adj_graph *g, int n_root, const adj_node *const root[], char *needed);
/* Returns the users of each node, by id, among the nodes that the roots need; allocated from p.
 * NULL if out of memory. */
adj_uses *find_uses(const adj_graph *g, int n_root, const adj_node *const root[], region *p);
/* Returns the largest number of operands of a node, at least 1. */
int max_operands(const adj_graph *g);
/* True if the roots need the node. */
static inline int is_needed(const adj_uses *u) { return u->is_root || u->n_user > 0; }

/* ---- schema.c, infer.c ---- */

/* Checks that each value is one that the op's schema allows. */
adj_status check_attrs(const adj_node *n, const void *attrs);
/* Infers the type of the result and completes the attributes. */
adj_status infer_type(const adj_node *n, void *attrs, adj_type *out);

/* Prints one node on one line, as adj_print does. */
void print_node(FILE *f, const adj_node *n);
/* Prints " \"name\"", with newlines and quotes escaped. */
void print_name(FILE *f, const char *name);

#endif
