/* names.c - finds nodes by name: a hash table from a name to the node that adj_find returns for it.
 *
 * Several nodes may have one name. The table holds the leaf among them, else the one with the
 * smallest id, so that a lookup is one probe for any number of nodes. */
#include <string.h>

#include "base/hash.h"
#include "graph.h"

/* Returns the bucket that holds the name's node, or the free bucket for it. Requires: buckets. */
static uint32_t *find_bucket(const adj_graph *g, const char *name)
{
    const uint64_t hash = hash_text(HASH_START, name);
    uint32_t mask = g->n_name_bucket - 1, i = (uint32_t)(hash ^ hash >> 32) & mask;
    while (g->name_bucket[i] != 0 && strcmp(g->node[g->name_bucket[i] - 1]->name, name) != 0)
        i = (i + 1) & mask;
    return &g->name_bucket[i];
}

/* Makes room for one more name, with buckets at most half full. Returns 0 when out of memory. */
static int make_room(adj_graph *g)
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
            *find_bucket(g, g->node[old[i] - 1]->name) = old[i];
    return 1;
}

static int is_leaf(const adj_node *n) { return (n->op->flags & ADJ_OP_LEAF) != 0; }

/* Enters a named node into the table, unless another node of that name comes first. */
static void enter(adj_graph *g, const adj_node *n)
{
    uint32_t *bucket = find_bucket(g, n->name);
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
    const uint32_t found = *find_bucket(g, name);
    return found != 0 ? g->node[found - 1] : NULL;
}

adj_node *adj_label(adj_node *n, const char *name)
{
    if (n == NULL || n->name != NULL || name == NULL || name[0] == '\0')
        return n;
    adj_graph *g = n->graph;
    char *copy = make_room(g) ? region_string(&g->region, name) : NULL;
    if (copy == NULL) {
        adj_fail(g, ADJ_ENOMEM, "adj_label: out of memory");
        return n;
    }
    n->name = copy;
    enter(g, n);
    return n;
}
