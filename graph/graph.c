/* graph.c - the graph: immutable interned nodes, the first error, names.
 *
 * A node is found again by (op, operands, attributes, clone): building the same thing twice gives
 * the same node, so common subexpressions are shared without a pass. Ids grow, operands come first:
 * every walk is a single loop. */
#include <string.h>

#include "graph.h"
#include "hash.h"

static const char *const status_names[] = {
    "ok",        "bad argument",  "bad shape",      "bad dtype", "no gradient",
    "no kernel", "out of memory", "backend failed", "bad file",  "version mismatch",
};

const char *adj_status_name(adj_status status)
{
    size_t n = sizeof status_names / sizeof *status_names;
    return (size_t)status < n ? status_names[status] : "no status";
}

/* Until 1.0 a minor version may change any struct; later ones only a major. */
enum { VERSION_ABI = ADJ_VERSION_MAJOR == 0 ? 100 : 10000 };

int adj_version(void) { return ADJ_VERSION; }

const char *adj_version_text(void) { return ADJ_VERSION_TEXT; }

int is_known_version(int version) { return version / VERSION_ABI == ADJ_VERSION / VERSION_ABI; }

adj_text version_difference(int got)
{
    adj_text t;
    snprintf(t.s, sizeof t.s, "version %d.%d.%d, expected %s", got / 10000, got / 100 % 100,
             got % 100, ADJ_VERSION_TEXT);
    return t;
}

adj_graph *adj_graph_new_with(int version, const adj_graph_opts *opts)
{
    int is_known = is_known_version(version);
    if (!is_known) /* laid out in another way, perhaps */
        opts = NULL;
    adj_allocator a = default_allocator();
    int is_whole = take_allocator(&a, opts != NULL ? opts->allocator : NULL);
    adj_graph *g = adj_alloc(&a, sizeof *g);
    if (g == NULL)
        return NULL;
    g->region.allocator = a;
    if (opts != NULL)
        g->opts = *opts;
    g->opts.allocator = &g->region.allocator;
    if (!is_whole)
        adj_fail(g, ADJ_EARG, "adj_graph_new: allocator: a function is NULL");
    if (!is_known)
        adj_fail(g, ADJ_EVERSION, "adj_graph_new: header and library differ (got %s)",
                 version_difference(version).s);
    return g;
}

void adj_graph_free(adj_graph *g)
{
    if (g == NULL)
        return;
    adj_allocator a = g->region.allocator;
    region_free(&g->region);
    adj_release(&a, g);
}

adj_status adj_graph_status(const adj_graph *g) { return g != NULL ? g->status : ADJ_ENOMEM; }

const char *adj_graph_message(const adj_graph *g)
{
    return g != NULL ? g->message : "adj_graph_new: out of memory";
}

void write_message(char message[MESSAGE], const char *format, va_list args)
{
    vsnprintf(message, MESSAGE, format, args);
}

adj_status adj_fail(adj_graph *g, adj_status status, const char *format, ...)
{
    if (g == NULL || g->status != ADJ_OK)
        return status;
    va_list args;
    va_start(args, format);
    write_message(g->message, format, args);
    va_end(args);
    g->status = status;
    if (g->opts.on_error != NULL)
        g->opts.on_error(g->opts.user, status, g->message);
    return status;
}

void *adj_graph_alloc(adj_graph *g, size_t bytes)
{
    void *p = region_alloc(&g->region, 1, bytes);
    if (p == NULL)
        adj_fail(g, ADJ_ENOMEM, "adj_graph_alloc: out of memory (asked for %zu bytes)", bytes);
    return p;
}

/* ---- interning ---- */

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

/* The bucket that holds n's equal, or the free one where it belongs. */
static uint32_t *find_bucket(const adj_graph *g, const adj_node *n)
{
    uint32_t mask = g->n_bucket - 1, i = (uint32_t)hash_node(n) & mask;
    while (g->bucket[i] != 0 && !same_node(g->node[g->bucket[i] - 1], n))
        i = (i + 1) & mask;
    return &g->bucket[i];
}

/* Room for one more node, and buckets at most half full. */
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
        adj_fail(g, ADJ_EARG, "%s: bad operands", op->name); /* in case infer gave no reason */
        return NULL;
    }
    for (int64_t i = n.type.shape.rank; i >= 0 && i < ADJ_MAX_RANK; i++)
        n.type.shape.dim[i] = 0;
    if (adj_check_type(g, op->name, "result", n.type) != ADJ_OK || grow(g) != ADJ_OK)
        return NULL;
    n.attrs = completed;
    n.clone = g->clone;
    uint32_t *bucket = find_bucket(g, &n);
    return *bucket != 0 ? g->node[*bucket - 1] : insert(g, &n, bucket);
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

/* ---- looking at nodes ---- */

int adj_graph_node_count(const adj_graph *g) { return g != NULL ? g->n_node : 0; }

adj_node *adj_graph_node_at(const adj_graph *g, int id)
{
    return g != NULL && id >= 0 && id < g->n_node ? g->node[id] : NULL;
}

adj_graph *adj_node_graph(const adj_node *n) { return n != NULL ? n->graph : NULL; }
int adj_node_id(const adj_node *n) { return n != NULL ? (int)n->id : -1; }
const char *adj_node_op(const adj_node *n) { return n != NULL ? n->op->name : ""; }
const char *adj_node_name(const adj_node *n) { return n != NULL && n->name != NULL ? n->name : ""; }
adj_type adj_node_type(const adj_node *n) { return n != NULL ? n->type : (adj_type){0}; }
int adj_node_operand_count(const adj_node *n) { return n != NULL ? n->n_in : 0; }

adj_node *adj_node_operand_at(const adj_node *n, int i)
{
    return n != NULL && i >= 0 && i < n->n_in ? n->in[i] : NULL;
}

adj_node *adj_find(const adj_graph *g, const char *name)
{
    adj_node *labelled = NULL;
    for (int i = 0; g != NULL && name != NULL && i < g->n_node; i++) {
        adj_node *n = g->node[i];
        if (n->name == NULL || strcmp(n->name, name) != 0)
            continue;
        if (n->op->flags & ADJ_OP_LEAF)
            return n;
        labelled = labelled != NULL ? labelled : n;
    }
    return labelled;
}

adj_node *adj_label(adj_node *n, const char *name)
{
    if (n == NULL || n->name != NULL || name == NULL || name[0] == '\0')
        return n;
    if ((n->name = region_string(&n->graph->region, name)) == NULL)
        adj_fail(n->graph, ADJ_ENOMEM, "adj_label: out of memory");
    return n;
}
