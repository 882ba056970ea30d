/* node.c - creates nodes: checks them, infers their type and interns them.
 *
 * A node is immutable and found again by (op, operands, attributes, clone): building the same
 * node twice returns the same node, so common subexpressions are shared without a pass. Ids grow
 * and operands come first, so every walk is a single loop. */
#include <string.h>

#include "base/hash.h"
#include "graph.h"

static uint64_t hash_node(const adj_node *n)
{
    uint64_t hash = hash_text(HASH_START, n->op->name);
    for (int i = 0; i < n->n_in; i++)
        hash = hash_bytes(hash, &n->in[i]->id, sizeof n->in[i]->id);
    hash = hash_bytes(hash, n->attrs, adj_attr_size(n->op));
    return hash ^ hash >> 32;
}

static int same_node(const adj_node *a, const adj_node *b)
{
    if (a->op != b->op || a->n_in != b->n_in || a->clone != b->clone)
        return 0;
    for (int i = 0; i < a->n_in; i++)
        if (a->in[i] != b->in[i])
            return 0;
    const size_t size = adj_attr_size(a->op);
    return size == 0 || memcmp(a->attrs, b->attrs, size) == 0;
}

/* Returns the bucket that holds a node equal to n, or the free bucket for n. */
static uint32_t *find_bucket(const adj_graph *g, const adj_node *n)
{
    uint32_t mask = g->n_bucket - 1, i = (uint32_t)hash_node(n) & mask;
    while (g->bucket[i] != 0 && !same_node(g->node[g->bucket[i] - 1], n))
        i = (i + 1) & mask;
    return &g->bucket[i];
}

/* Makes room for one more node, with buckets at most half full. */
static adj_status grow(adj_graph *g)
{
    if (g->n_node < g->capacity)
        return ADJ_OK;
    int capacity = g->capacity;
    adj_node **node = region_grow(&g->region, g->node, g->n_node, &capacity, sizeof(adj_node *));
    uint32_t *bucket = region_alloc(&g->region, (size_t)capacity * 2, sizeof *bucket);
    if (node == NULL || bucket == NULL)
        return adj_fail(g, ADJ_ENOMEM, "adj_node_new: out of memory");
    g->node = node;
    g->capacity = capacity;
    g->bucket = bucket;
    g->n_bucket = (uint32_t)capacity * 2;
    for (int i = 0; i < g->n_node; i++)
        *find_bucket(g, node[i]) = (uint32_t)i + 1;
    return ADJ_OK;
}

static adj_node *insert(adj_graph *g, const adj_node *wanted, uint32_t *bucket)
{
    adj_node *n = region_alloc(&g->region, 1, sizeof *n);
    adj_node **in = region_alloc(&g->region, (size_t)wanted->n_in, sizeof(adj_node *));
    const size_t attr_size = adj_attr_size(wanted->op);
    void *attrs = region_alloc(&g->region, 1, attr_size);
    if (n == NULL || in == NULL || attrs == NULL) {
        adj_fail(g, ADJ_ENOMEM, "%s: out of memory", wanted->op->name);
        return NULL;
    }
    *n = *wanted;
    for (int i = 0; i < wanted->n_in; i++)
        in[i] = wanted->in[i];
    n->in = in;
    n->attrs = memcpy(attrs, wanted->attrs, attr_size);
    n->id = (uint32_t)g->n_node;
    n->role = g->role;
    g->node[g->n_node++] = n;
    *bucket = n->id + 1;
    return n;
}

static adj_status check_operands(adj_graph *g, const adj_op *op, int n_in, adj_node *const in[])
{
    if (op->n_in == ADJ_MANY ? n_in < 1 : n_in != op->n_in)
        return adj_fail(g, ADJ_EARG, "%s: wrong number of operands (got %d, expected %d%s)",
                        op->name, n_in, op->n_in == ADJ_MANY ? 1 : op->n_in,
                        op->n_in == ADJ_MANY ? " or more" : "");
    for (int i = 0; i < n_in; i++)
        if (in[i]->graph != g)
            return adj_fail(g, ADJ_EARG, "%s: operand %d belongs to another graph", op->name, i);
    if (adj_attr_size(op) > MAX_ATTR)
        return adj_fail(g, ADJ_EARG,
                        "%s: attributes are too large (got %zu bytes, expected at most %d)",
                        op->name, adj_attr_size(op), MAX_ATTR);
    return ADJ_OK;
}

adj_node *adj_node_new_with(int version, adj_graph *g, const adj_op *op, int n_in,
                            adj_node *const in[], const void *attrs)
{
    _Alignas(16) char completed[MAX_ATTR] = {0};
    adj_node n = {.op = op, .graph = g, .n_in = n_in, .in = (adj_node **)in, .attrs = NULL};

    if (g == NULL || g->status != ADJ_OK)
        return NULL;
    if (!is_known_version(version)) {
        adj_fail(g, ADJ_EVERSION, "adj_node_new: op's header and library differ (got %s)",
                 version_difference(version).s);
        return NULL;
    }
    for (int i = 0; i < n_in; i++)
        if (in[i] == NULL)
            return NULL;
    if (check_operands(g, op, n_in, in) != ADJ_OK)
        return NULL;
    if (op->schema != NULL)
        memcpy(completed, attrs, adj_attr_size(op));
    if (infer_type(&n, completed, &n.type) != ADJ_OK) {
        adj_fail(g, ADJ_EARG, "%s: bad operands", op->name); /* if infer recorded no error */
        return NULL;
    }
    n.type.shape = adj_trimmed(n.type.shape);
    if (adj_check_type(g, op->name, "result", n.type) != ADJ_OK || grow(g) != ADJ_OK)
        return NULL;
    n.attrs = completed;
    n.clone = g->clone;
    uint32_t *bucket = find_bucket(g, &n);
    return *bucket != 0 && !g->is_unmerged ? g->node[*bucket - 1] : insert(g, &n, bucket);
}

adj_node *adj_node_clone(const adj_node *n, adj_node *const in[], int copy)
{
    adj_graph *g = n->graph;
    int outer = g->clone;
    g->clone = copy;
    adj_node *y = adj_node_new(g, n->op, n->n_in, in, n->attrs);
    g->clone = outer;
    return y;
}
