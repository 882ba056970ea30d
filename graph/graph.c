/* graph.c - the graph: versions, the first error, memory, access to nodes by id and by name. */
#include <string.h>

#include "base/c_locale.h"
#include "base/hash.h"
#include "graph.h"

static const char *const status_names[] = {
    "ok",        "bad argument",  "bad shape",      "bad dtype", "no gradient",
    "no kernel", "out of memory", "backend failed", "bad file",  "version mismatch",
};

const char *adj_status_name(adj_status status)
{
    size_t n = sizeof status_names / sizeof *status_names;
    return (size_t)status < n ? status_names[status] : "no status";
}

/* Until 1.0 a minor version may change any struct; after that only a major one. */
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
    if (!is_known) /* its structs may have another layout */
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

adj_status adj_error_set(adj_error *error, adj_status status, const char *format, ...)
{
    if (error == NULL)
        return status;
    va_list args;
    va_start(args, format);
    c_vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    error->status = status;
    return status;
}

adj_status adj_fail(adj_graph *g, adj_status status, const char *format, ...)
{
    if (g == NULL || g->status != ADJ_OK)
        return status;
    const int has_layer = g->layer != NULL && g->layer[0] != '\0';
    const int n = has_layer ? snprintf(g->message, sizeof g->message, "%.160s: ", g->layer) : 0;
    va_list args;
    va_start(args, format);
    c_vsnprintf(g->message + n, sizeof g->message - (size_t)n, format, args);
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
        adj_fail(g, ADJ_ENOMEM, "adj_graph_alloc: out of memory (needs %zu bytes)", bytes);
    return p;
}

/* ---- access to nodes ---- */

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

/* ---- access to nodes by name ----
 *
 * Several nodes may have one name. A hash table holds the leaf among them, else the one with the
 * smallest id, so that a lookup is one probe for any number of nodes. */

/* Returns the bucket that holds the name's node, or the free bucket for it. Requires: buckets. */
static uint32_t *bucket_of_name(const adj_graph *g, const char *name)
{
    const uint64_t hash = hash_text(HASH_START, name);
    uint32_t mask = g->n_name_bucket - 1, i = (uint32_t)(hash ^ hash >> 32) & mask;
    while (g->name_bucket[i] != 0 && strcmp(g->node[g->name_bucket[i] - 1]->name, name) != 0)
        i = (i + 1) & mask;
    return &g->name_bucket[i];
}

/* Makes room for one more name, with buckets at most half full. Returns 0 when out of memory. */
static int make_room_for_name(adj_graph *g)
{
    if (2 * (g->n_name + 1) <= g->n_name_bucket)
        return 1;
    const uint32_t n_old = g->n_name_bucket, n_new = n_old > 0 ? 2 * n_old : 64;
    const uint32_t *old = g->name_bucket;
    uint32_t *bucket = region_alloc(&g->region, n_new, sizeof *bucket);
    if (bucket == NULL)
        return 0;
    g->name_bucket = bucket;
    g->n_name_bucket = n_new;
    for (uint32_t i = 0; i < n_old; i++)
        if (old[i] != 0)
            *bucket_of_name(g, g->node[old[i] - 1]->name) = old[i];
    return 1;
}

static int is_leaf(const adj_node *n) { return (n->op->flags & ADJ_OP_LEAF) != 0; }

/* Enters a named node into the table, unless another node of that name comes first. */
static void enter_name(adj_graph *g, const adj_node *n)
{
    uint32_t *bucket = bucket_of_name(g, n->name);
    const adj_node *other = *bucket != 0 ? g->node[*bucket - 1] : NULL;
    g->n_name += other == NULL;
    if (other == NULL || is_leaf(n) > is_leaf(other) ||
        (is_leaf(n) == is_leaf(other) && n->id < other->id))
        *bucket = n->id + 1;
}

adj_node *adj_find(const adj_graph *g, const char *name)
{
    if (g == NULL || name == NULL || g->n_name_bucket == 0)
        return NULL;
    const uint32_t found = *bucket_of_name(g, name);
    return found != 0 ? g->node[found - 1] : NULL;
}

adj_node *adj_label(adj_node *n, const char *name)
{
    if (n == NULL || n->name != NULL || name == NULL || name[0] == '\0')
        return n;
    adj_graph *g = n->graph;
    char *copy = make_room_for_name(g) ? region_string(&g->region, name) : NULL;
    if (copy == NULL) {
        adj_fail(g, ADJ_ENOMEM, "adj_label: out of memory");
        return n;
    }
    n->name = copy;
    enter_name(g, n);
    return n;
}
