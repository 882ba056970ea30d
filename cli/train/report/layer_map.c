/* layer_map.c - which layer each node belongs to: see plan.h. */
#include <stdlib.h>
#include <string.h>

#include "plan.h"

enum { NO_LAYER = -1 };

void layer_name(const adj_node *param, size_t size, char name[])
{
    snprintf(name, size, "%s", adj_node_name(param));
    char *slash = strrchr(name, '/');
    if (slash != NULL)
        *slash = '\0';
}

static int same_prefix(const adj_node *a, const adj_node *b)
{
    const char *p = adj_node_name(a), *q = adj_node_name(b);
    const char *end = strrchr(p, '/'), *other = strrchr(q, '/');
    size_t n = end != NULL ? (size_t)(end - p) : strlen(p);
    size_t m = other != NULL ? (size_t)(other - q) : strlen(q);
    return n == m && memcmp(p, q, n) == 0;
}

static int find_layer(const layer_map *m, const adj_node *param)
{
    for (int k = 0; k < m->n; k++)
        if (same_prefix(m->first[k], param))
            return k;
    return NO_LAYER;
}

static void mark_needed(layer_map *m, const adj_graph *g, const adj_node *loss)
{
    m->needed[loss->id] = 1;
    for (int id = adj_graph_node_count(g) - 1; id >= 0; id--) {
        const adj_node *n = adj_graph_node_at(g, id);
        m->needed[id] |= n->role == ADJ_ROLE_UPDATE;
        for (int i = 0; i < n->n_in && m->needed[id]; i++)
            m->needed[n->in[i]->id] = 1;
    }
}

/* Layers, their parameters, and what is made of weights alone. */
static void list_layers(layer_map *m, const adj_graph *g)
{
    for (int id = 0; id < adj_graph_node_count(g); id++) {
        const adj_node *n = adj_graph_node_at(g, id);
        m->of[id] = NO_LAYER;
        m->weight[id] = n->n_in > 0 || n->op != &adj_op_input;
        for (int i = 0; i < n->n_in; i++)
            m->weight[id] &= m->weight[n->in[i]->id];
        if (!adj_node_is_param(n) || !m->needed[id])
            continue;
        if ((m->of[id] = find_layer(m, n)) == NO_LAYER) {
            m->first[m->n] = n;
            m->of[id] = m->n++;
        }
    }
}

/* The layer of the weights among the operands. */
static int layer_of_weights(const layer_map *m, const adj_node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (m->weight[n->in[i]->id] && m->of[n->in[i]->id] != NO_LAYER)
            return m->of[n->in[i]->id];
    return NO_LAYER;
}

static int layer_of_first(const layer_map *m, const adj_node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (m->of[n->in[i]->id] != NO_LAYER)
            return m->of[n->in[i]->id];
    return NO_LAYER;
}

/* The layer of the last forward value among the operands: of relu_grad(dy, y) that of y. */
static int layer_of_value(const layer_map *m, const adj_node *n)
{
    const adj_node *last = NULL;
    for (int i = 0; i < n->n_in; i++) {
        const adj_node *x = n->in[i];
        if (x->role == ADJ_ROLE_FORWARD && m->of[x->id] != NO_LAYER &&
            (last == NULL || x->id > last->id))
            last = x;
    }
    return last != NULL ? m->of[last->id] : NO_LAYER;
}

static void place_forward(layer_map *m, const adj_graph *g)
{
    for (int id = 0; id < adj_graph_node_count(g); id++) {
        const adj_node *n = adj_graph_node_at(g, id);
        if (n->role != ADJ_ROLE_FORWARD || n->n_in == 0)
            continue;
        m->of[id] = layer_of_weights(m, n);
        if (m->of[id] == NO_LAYER) {
            m->of[id] = layer_of_first(m, n);
            continue;
        }
        /* A statistic of an image that is spread over the image again belongs to who does it. */
        for (int i = 0; i < n->n_in; i++) {
            const adj_node *x = n->in[i];
            if (!m->weight[x->id] && x->n_in > 0 && x->type.shape.rank < n->type.shape.rank &&
                x->type.shape.rank < x->in[0]->type.shape.rank)
                m->of[x->id] = m->of[id];
        }
    }
}

/* A parameter's update belongs to its layer, and with it the parameter's gradient, up to where that
 * has another size. */
static void place_updates(layer_map *m, const adj_graph *g)
{
    for (int id = adj_graph_node_count(g) - 1; id >= 0; id--) {
        const adj_node *n = adj_graph_node_at(g, id);
        if (n->role == ADJ_ROLE_UPDATE && m->of[id] == NO_LAYER)
            m->of[id] = layer_of_weights(m, n);
        if (n->role == ADJ_ROLE_FORWARD || m->of[id] == NO_LAYER)
            continue;
        for (int i = 0; i < n->n_in; i++) {
            const adj_node *x = n->in[i];
            if (x->role != ADJ_ROLE_FORWARD && x->n_in > 0 && m->of[x->id] == NO_LAYER &&
                adj_shape_elems(x->type.shape) == adj_shape_elems(n->type.shape))
                m->of[x->id] = m->of[id];
        }
    }
}

static void place_gradients(layer_map *m, const adj_graph *g)
{
    for (int id = 0; id < adj_graph_node_count(g); id++) {
        const adj_node *n = adj_graph_node_at(g, id);
        if (n->role == ADJ_ROLE_FORWARD || n->n_in == 0 || m->of[id] != NO_LAYER)
            continue;
        m->of[id] = layer_of_weights(m, n);
        if (m->of[id] == NO_LAYER)
            m->of[id] = layer_of_value(m, n);
        if (m->of[id] == NO_LAYER)
            m->of[id] = layer_of_first(m, n);
    }
}

int layer_map_make(layer_map *m, const adj_graph *g, const adj_node *loss)
{
    size_t n = (size_t)adj_graph_node_count(g) + 1;
    *m = (layer_map){.first = calloc(n, sizeof *m->first),
                     .of = calloc(n, sizeof *m->of),
                     .needed = calloc(n, 1),
                     .weight = calloc(n, 1)};
    if (m->first == NULL || m->of == NULL || m->needed == NULL || m->weight == NULL)
        return -1;
    mark_needed(m, g, loss);
    list_layers(m, g);
    place_forward(m, g);
    place_updates(m, g);
    place_gradients(m, g);
    return 0;
}

void layer_map_free(layer_map *m)
{
    free(m->first);
    free(m->of);
    free(m->needed);
    free(m->weight);
    *m = (layer_map){0};
}
