/* graph.c - the graph: versions, the first error, memory, access to nodes by id. */
#include <string.h>

#include "base/c_locale.h"
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
