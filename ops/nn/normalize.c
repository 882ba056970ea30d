/* normalize.c - normalization layers and dropout. Batch norm and dropout behave differently in
 * training: both keep a state whose next value is one of the graph's adj_layer_updates; an
 * executor with these updates assigns it. */
#include <stdlib.h>

#include "base/hash.h"
#include "ops/grad.h"
#include "nn.h"

/* ---- batch norm ---- */

/* running' = (1 - momentum) * running + momentum * [mean, variance * m/(m-1)], m being the
 * elements of x per channel: statistics hold the biased variance, the running one is unbiased. */
static void update_running(adj_node *running, adj_node *stats, int64_t m, double momentum)
{
    if (running == NULL || stats == NULL)
        return;
    adj_graph *g = adj_node_graph(running);
    double unbiased = m > 1 ? (double)m / (double)(m - 1) : 1;
    adj_type t = adj_node_type(stats);
    double factor[2];
    adj_store(t.dtype, factor, 0, 1);
    adj_store(t.dtype, factor, 1, unbiased);

    adj_role role = adj_graph_set_role(g, ADJ_ROLE_UPDATE);
    adj_node *both = adj_const(g, t.dtype, (adj_shape){2, {2, 1}}, factor);
    adj_layer_update_add(running, adj_ema(running, adj_mul(stats, both), 1 - momentum));
    adj_graph_set_role(g, role);
}

/* Adds the state [2, c]: mean 0 and variance 1. */
static adj_node *new_running(adj_graph *g, const char *name, adj_dtype dtype, int64_t c)
{
    const adj_shape shape = {2, {2, c}};
    void *data = malloc(adj_type_bytes((adj_type){dtype, shape}) + 1);
    if (data == NULL) {
        adj_fail(g, ADJ_ENOMEM, "%s: out of memory", name);
        return NULL;
    }
    for (int64_t i = 0; i < 2 * c; i++)
        adj_store(dtype, data, i, i >= c);
    adj_node *running =
        adj_state(g, name, dtype, shape, (adj_init){.kind = ADJ_INIT_DATA, .data = data});
    free(data);
    return running;
}

static adj_node *build_batch_norm(adj_node *x, const char *name, const void *options)
{
    const adj_norm_layer none = {0}, *o = options != NULL ? options : &none;
    adj_graph *g = adj_node_graph(x);
    adj_type t = adj_node_type(x);
    if (t.shape.rank != 4) {
        adj_fail(g, ADJ_ESHAPE, "input has the wrong rank (got %lld, expected 4)",
                 (long long)t.shape.rank);
        return NULL;
    }
    int64_t c = t.shape.dim[o->format == ADJ_NCHW ? 1 : 3], n = adj_shape_elems(t.shape);
    const double momentum = nn_or_default(o->momentum, 0.1);
    const double epsilon = nn_or_default(o->epsilon, 1e-5);
    if (!(momentum > 0 && momentum <= 1)) {
        adj_fail(g, ADJ_EARG, "momentum is out of range (got %g, expected 0 to 1)", momentum);
        return NULL;
    }
    const adj_shape channels = {1, {c}};
    adj_node *gamma = nn_kept_param(x, name, "gamma", channels, adj_init_constant(1));
    adj_node *beta = nn_kept_param(x, name, "beta", channels, adj_init_constant(0));
    const nn_name running_name = nn_join(g, name, "running");
    if (adj_graph_status(g) != ADJ_OK)
        return NULL;
    adj_node *running = new_running(g, running_name.s, nn_kept_dtype(t.dtype), c);
    adj_node *stats = running;
    if (o->training) {
        stats = adj_batch_norm_stats(x, o->format);
        update_running(running, stats, c > 0 ? n / c : 0, momentum);
    }
    return adj_label(adj_batch_norm(x, stats, gamma, beta, epsilon, o->format), name);
}

adj_node *adj_layer_batch_norm(adj_node *x, const char *name, const adj_norm_layer *options)
{
    return nn_in_layer(x, name, build_batch_norm, options);
}

/* ---- group norm, layer norm ---- */

typedef struct {
    int64_t groups; /* 0 for layer norm */
    const adj_norm_layer *options;
} norm_args;

static adj_node *build_norm(adj_node *x, const char *name, const void *args)
{
    const adj_norm_layer none = {0};
    const norm_args *a = args;
    const adj_norm_layer *o = a->options != NULL ? a->options : &none;
    const adj_type t = adj_node_type(x);
    if (t.shape.rank < 1 || (a->groups != 0 && t.shape.rank < 2)) {
        adj_fail(adj_node_graph(x), ADJ_ESHAPE,
                 "input has the wrong rank (got %lld, expected %d or more)",
                 (long long)t.shape.rank, a->groups != 0 ? 2 : 1);
        return NULL;
    }
    const int is_nchw = a->groups != 0 && o->format == ADJ_NCHW;
    const adj_shape c = {1, {t.shape.dim[is_nchw ? 1 : t.shape.rank - 1]}};
    /* Layer norm is made of views; they work as well with group norm's f32 parameters beside
     * half values. */
    adj_node *gamma = nn_kept_param(x, name, "gamma", c, adj_init_constant(1));
    adj_node *beta = nn_kept_param(x, name, "beta", c, adj_init_constant(0));
    const double epsilon = nn_or_default(o->epsilon, 1e-5);
    adj_node *y = a->groups != 0 ? adj_group_norm(x, gamma, beta, a->groups, epsilon, o->format)
                                 : adj_layer_norm(x, gamma, beta, epsilon);
    return adj_label(y, name);
}

adj_node *adj_layer_group_norm(adj_node *x, const char *name, int64_t groups,
                               const adj_norm_layer *options)
{
    if (x != NULL && groups < 1)
        adj_fail(adj_node_graph(x), ADJ_EARG,
                 "group_norm: groups is out of range (got %lld, expected 1 or more)",
                 (long long)groups);
    return groups < 1 ? NULL : nn_in_layer(x, name, build_norm, &(norm_args){groups, options});
}

adj_node *adj_layer_layer_norm(adj_node *x, const char *name, const adj_norm_layer *options)
{
    if (x != NULL && options != NULL && options->format != ADJ_NHWC) {
        adj_fail(adj_node_graph(x), ADJ_EARG, "layer_norm: format is not NHWC (got %d)",
                 (int)options->format);
        return NULL;
    }
    return nn_in_layer(x, name, build_norm, &(norm_args){0, options});
}

/* ---- dropout ---- */

static adj_node *build_dropout(adj_node *x, const char *name, const void *rate)
{
    adj_graph *g = adj_node_graph(x);
    if (name == NULL || name[0] == 0) {
        adj_fail(g, ADJ_EARG, "dropout: name is missing (it seeds the mask)");
        return NULL;
    }
    int first = adj_find(g, "dropout/step") == NULL;
    adj_node *step = nn_state(g, "dropout/step", ADJ_I32, (adj_shape){0}, 0);
    if (first && step != NULL) {
        adj_role role = adj_graph_set_role(g, ADJ_ROLE_UPDATE);
        adj_layer_update_add(step, adj_next_step(step));
        adj_graph_set_role(g, role);
    }
    uint64_t seed = hash_text(HASH_START, name); /* each layer name gives another mask */
    return adj_label(adj_dropout(x, step, *(const double *)rate, seed), name);
}

adj_node *adj_layer_dropout(adj_node *x, const char *name, double rate, int training)
{
    return training ? nn_in_layer(x, name, build_dropout, &rate) : x;
}
