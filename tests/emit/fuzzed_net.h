/* fuzzed_net.h - random nets with their values: of the graph fuzzer (grow.h), for inference or with
 * a training step. */
#ifndef TESTS_EMIT_FUZZED_NET_H
#define TESTS_EMIT_FUZZED_NET_H

#include <stdlib.h>
#include <string.h>

#include "fuzz/grow.h"
#include "fuzz/must.h"
#include "graph/op.h"

enum { STEPS = 20, GRADIENTS = 4, TRAINING_STEPS = 3, CLASSES = 3 };
static const float TRAINING_RATE = 0.02F;

/* A graph with the output y of the input x. The parts are the values to compare: y, or those that y
 * is the concatenation of; with updates, what these assign. */
typedef struct {
    adj_graph *g;
    adj_node *x, *y;
    adj_node *labels, *lr, *loss; /* loss: NULL for inference */
    adj_updates *updates;
    int n_part;
    adj_node *part[MAX_VALUES];
} net;

/* ---- the graph ---- */

static inline int is_kept(const adj_node *n)
{
    return adj_node_is_param(n) || adj_node_is_state(n);
}

/* Marks the nodes that depend on one. */
static inline char *dependents(const adj_graph *g, const adj_node *x)
{
    char *is_dependent = calloc((size_t)adj_graph_node_count(g), 1);
    must(is_dependent != NULL);
    is_dependent[adj_node_id(x)] = 1;
    for (int id = 0; id < adj_graph_node_count(g); id++)
        for (int k = 0; k < adj_node_operand_count(adj_graph_node_at(g, id)); k++)
            is_dependent[id] |=
                is_dependent[adj_node_id(adj_node_operand_at(adj_graph_node_at(g, id), k))];
    return is_dependent;
}

static inline int has_user(const adj_graph *g, const adj_node *n)
{
    for (int id = adj_node_id(n) + 1; id < adj_graph_node_count(g); id++)
        for (int k = 0; k < adj_node_operand_count(adj_graph_node_at(g, id)); k++)
            if (adj_node_operand_at(adj_graph_node_at(g, id), k) == n)
                return 1;
    return 0;
}

/* Adds the gradients of the sum of a value for the input and some parameters. */
static inline void add_gradients(garden *t, adj_node *y)
{
    adj_node *leaf[GRADIENTS] = {t->value[0]}, *d[GRADIENTS];
    int n = 1;
    for (int i = 1; i < t->n && n < GRADIENTS; i++)
        if (adj_node_is_param(t->value[i]) && adj_node_type(t->value[i]).dtype == t->dtype)
            leaf[n++] = t->value[i];
    if (adj_node_type(y).shape.rank > 0)
        y = adj_reduce_sum(adj_square(y), (adj_axes){.n = ADJ_ALL});
    if (adj_grad(y, NULL, n, leaf, d) == ADJ_OK)
        for (int i = 0; i < n; i++)
            keep(t, d[i]);
}

static inline int is_assigned(const adj_updates *u, const adj_node *leaf)
{
    for (int i = 0; i < adj_updates_count(u); i++)
        if (adj_updates_leaf_at(u, i) == leaf)
            return 1;
    return 0;
}

/* Makes the output: every value that nothing reads, or the last alone. */
static inline void choose_output(net *n, const garden *t, int is_single)
{
    adj_node *flat[MAX_VALUES];
    char *is_dependent = dependents(n->g, n->x);
    for (int i = t->n - 1; i > 0 && (!is_single || n->n_part == 0); i--) {
        const adj_type type = adj_node_type(t->value[i]);
        int is_twice = 0;
        for (int k = 0; k < n->n_part; k++)
            is_twice |= n->part[k] == t->value[i];
        if (type.dtype == t->dtype && adj_shape_elems(type.shape) > 0 && !is_twice &&
            is_dependent[adj_node_id(t->value[i])] && (is_single || !has_user(n->g, t->value[i])))
            n->part[n->n_part++] = t->value[i];
    }
    free(is_dependent);
    for (int k = 0; k < n->n_part; k++)
        flat[k] = adj_reshape(n->part[k], (adj_shape){1, {-1}});
    if (n->n_part > 0)
        n->y = is_single ? n->part[0] : adj_concat(n->n_part, flat, 0);
}

/* Adds a classifier behind the output, its loss, and updates of everything that can be trained. */
static inline void add_training(net *n, unsigned seed)
{
    const adj_optimizer_opts optimizers[] = {{.momentum = 0.9},
                                             {.weight_decay = 0.01},
                                             {.momentum = 0.5, .nesterov = 1},
                                             {.clip_norm = 0.25}};
    adj_node *row = adj_reshape(n->y, (adj_shape){2, {1, -1}});
    adj_node *logits = adj_layer_dense(row, "head", CLASSES, NULL);
    if (logits == NULL)
        return;
    n->labels = adj_input(n->g, "labels of the loss", ADJ_I32, (adj_shape){1, {1}});
    n->loss = adj_loss_softmax(logits, n->labels, NULL);
    n->updates = adj_training_updates(n->loss, &optimizers[seed / 4 % 4]);
    n->lr = adj_find(n->g, "learning_rate");
    n->y = adj_evaluation(logits);
    n->n_part = 0;
    for (int id = 0; id < adj_graph_node_count(n->g) && adj_graph_status(n->g) == ADJ_OK; id++) {
        adj_node *leaf = adj_graph_node_at(n->g, id);
        must(n->n_part < MAX_VALUES);
        if (is_kept(leaf) && is_assigned(n->updates, leaf) && adj_node_type(leaf).dtype != ADJ_I32)
            n->part[n->n_part++] = leaf;
    }
}

static inline net net_grown(unsigned seed, adj_dtype dtype)
{
    net n = {.g = adj_graph_new()};
    garden t = {.in.seed = (seed * 2654435761U) | 1, .uniform = 1, .dtype = dtype, .g = n.g};
    t.updates = adj_updates_new(n.g);
    const adj_shape image = {
        4, {1 + pick(&t.in, 2), 2 + pick(&t.in, 5), 2 + pick(&t.in, 5), 1 + pick(&t.in, 8)}};
    const int is_trained = seed % 4 == 3;
    const int steps = 2 + pick(&t.in, STEPS), has_gradients = pick(&t.in, 3) == 0 && !is_trained;
    const int is_single = pick(&t.in, 3) == 0 || is_trained;
    n.x = keep(&t, adj_input(n.g, "x", dtype, image));
    for (int i = 0; i < steps && adj_graph_status(n.g) == ADJ_OK; i++)
        grow(&t);
    if (has_gradients && adj_graph_status(n.g) == ADJ_OK)
        add_gradients(&t, value_of(&t, -1, -1));
    if (adj_graph_status(n.g) == ADJ_OK)
        choose_output(&n, &t, is_single);
    if (is_trained && n.y != NULL && adj_graph_status(n.g) == ADJ_OK)
        add_training(&n, seed);
    return n;
}

static inline int are_alike(const net *a, const net *b)
{
    int alike = adj_graph_node_count(a->g) == adj_graph_node_count(b->g);
    for (int id = 0; id < adj_graph_node_count(a->g) && alike; id++)
        alike = strcmp(adj_node_op(adj_graph_node_at(a->g, id)),
                       adj_node_op(adj_graph_node_at(b->g, id))) == 0;
    return alike;
}

/* ---- values ---- */

/* Element i of a leaf: small integers, or anything from -1 to 1. */
static inline float value_at(unsigned seed, int id, int64_t i)
{
    unsigned h = ((unsigned)i + 1) * 2654435761U ^ ((unsigned)id + seed + 1) * 2246822519U;
    h = (h ^ h >> 15) * 2654435761U;
    return seed % 2 ? (float)(h >> 8) / 0x1p23F - 1 : (float)((int)((h >> 24) % 5) - 2);
}

/* trial: 0, or that of f64 whose leaves are up to a unit of f32 away. */
static inline void set_leaves(adj_exec *e, const net *n, unsigned seed, int trial)
{
    static double data[CLASSES * MAX_ELEMS]; /* the classifier has weights for each */
    for (int id = 0; id < adj_graph_node_count(n->g); id++) {
        adj_node *leaf = adj_graph_node_at(n->g, id);
        const adj_type type = adj_node_type(leaf);
        if (!is_kept(leaf) && leaf != n->x)
            continue;
        must((size_t)adj_shape_elems(type.shape) <= sizeof data / sizeof *data);
        for (int64_t i = 0; i < adj_shape_elems(type.shape); i++) {
            const float v = value_at(seed, id, i);
            const float noise = trial > 0 ? value_at(2 * (unsigned)trial + 1, id, i) : 0;
            if (type.dtype == ADJ_I32)
                ((int32_t *)data)[i] = (int32_t)(i % 2);
            else if (type.dtype == ADJ_F32)
                ((float *)data)[i] = v;
            else
                data[i] = (double)v * (1 + 0x1p-23 * (double)noise);
        }
        adj_set(e, leaf, data, adj_type_bytes(type)); /* refused if the plan does not need it */
    }
}

/* A net on naive with its values; its first fetch is the loss or y. */
static inline adj_exec *plan_on_naive(const net *n, unsigned seed, int trial)
{
    adj_exec *e = NULL;
    const adj_exec_opts o = {.n_fetch = 1,
                             .fetch = n->loss != NULL ? &n->loss : &n->y,
                             .updates = n->updates,
                             .backend = "naive",
                             .threads = 1};
    must(adj_exec_new(n->g, &o, &e) == ADJ_OK);
    set_leaves(e, n, seed, trial);
    return e;
}

static inline int64_t count_elements(const net *n)
{
    int64_t count = 0;
    for (int i = 0; i < n->n_part; i++)
        count += adj_shape_elems(adj_node_type(n->part[i]).shape);
    return count;
}

/* Runs a net, or some steps. Returns all its parts, to be freed, or NULL for labels that are none.
 */
static inline void *run_on_naive(adj_exec *e, const net *n)
{
    const adj_dtype dtype = adj_node_type(n->y).dtype;
    const size_t size = dtype == ADJ_F64 ? sizeof(double) : sizeof(float);
    const float rate = TRAINING_RATE;
    const double wide = (double)rate;
    char *y = malloc(size * (size_t)count_elements(n) + 1);
    adj_status status = ADJ_OK;
    must(y != NULL);
    for (int32_t step = 0; step < (n->loss != NULL ? TRAINING_STEPS : 1) && status == ADJ_OK;
         step++) {
        if (n->loss != NULL) {
            adj_set(e, n->labels, &step, sizeof step);
            adj_set(e, n->lr, dtype == ADJ_F64 ? (const void *)&wide : &rate, size);
        }
        status = adj_run(e);
    }
    must(status == ADJ_OK || status == ADJ_EARG);
    size_t at = 0;
    for (int i = 0; i < n->n_part && n->loss != NULL && status == ADJ_OK; i++) {
        const size_t bytes = adj_type_bytes(adj_node_type(n->part[i]));
        must(adj_get(e, n->part[i], y + at, bytes) == ADJ_OK);
        at += bytes;
    }
    if (n->loss == NULL && status == ADJ_OK)
        status = adj_get(e, n->y, y, adj_type_bytes(adj_node_type(n->y)));
    if (status == ADJ_OK)
        return y;
    free(y);
    return NULL;
}

#endif
