/* layers.c - layers, which create their parameters: initial values, shared helpers, dense, prelu,
 * and layers without parameters.
 *
 * A layer "conv1" owns the leaves "conv1/w", "conv1/b", ... and labels its result "conv1". Sizes
 * that determine a parameter's shape are checked here, all others by the ops. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "nn.h"

/* ---- initial values ----
 *
 * Their variance keeps activations at about one size from layer to layer: he for layers followed by
 * a relu; glorot balances gradients as well. */

static double fan(int64_t n) { return n < 1 ? 1 : (double)n; }

adj_init adj_init_uniform(double low, double high)
{
    return (adj_init){.kind = ADJ_INIT_UNIFORM, .a = low, .b = high};
}

adj_init adj_init_normal(double mean, double deviation)
{
    return (adj_init){.kind = ADJ_INIT_NORMAL, .a = mean, .b = deviation};
}

adj_init adj_init_constant(double value)
{
    return (adj_init){.kind = ADJ_INIT_CONSTANT, .a = value};
}

/* A uniform in [-r, r) has variance r*r/3. */
adj_init adj_init_from_fans(adj_weight_init init, int64_t fan_in, int64_t fan_out)
{
    const int is_glorot = init == ADJ_GLOROT_NORMAL || init == ADJ_GLOROT_UNIFORM;
    const double fans = is_glorot ? fan(fan_in) + fan(fan_out) : fan(fan_in);

    if (init == ADJ_HE_UNIFORM || init == ADJ_GLOROT_UNIFORM)
        return adj_init_uniform(-sqrt(6 / fans), sqrt(6 / fans));
    return adj_init_normal(0, sqrt(2 / fans));
}

/* ---- shared helpers ---- */

adj_node *nn_in_layer(adj_node *x, const char *name, nn_build *build, const void *options)
{
    if (x == NULL)
        return NULL;
    adj_graph *g = adj_node_graph(x);
    const char *before = adj_graph_set_layer(g, name != NULL && name[0] != '\0' ? name : "layer");
    adj_node *y = build(x, name, options);
    adj_graph_set_layer(g, before);
    return y;
}

nn_name nn_join(adj_graph *g, const char *layer, const char *part)
{
    nn_name name = {""};

    if (layer == NULL || layer[0] == 0) {
        adj_fail(g, ADJ_EARG, "name is missing (got \"\", expected one for its %s)", part);
        return name;
    }
    int n = snprintf(name.s, sizeof name.s, "%s/%s", layer, part);
    if (n < 0 || (size_t)n >= sizeof name.s) {
        adj_fail(g, ADJ_EARG, "name is too long (got %zu characters, expected at most %zu)",
                 strlen(layer), sizeof name.s - strlen(part) - 2);
        name.s[0] = 0;
    }
    return name;
}

adj_dtype nn_kept_dtype(adj_dtype dtype) { return adj_dtype_size(dtype) == 2 ? ADJ_F32 : dtype; }

adj_node *nn_state(adj_graph *g, const char *name, adj_dtype dtype, adj_shape shape, double value)
{
    adj_node *found = adj_find(g, name);

    if (found != NULL && adj_node_is_state(found))
        return found;
    return adj_state(g, name, dtype, shape, adj_init_constant(value));
}

static adj_dtype dtype_of(const adj_node *x) { return adj_node_type(x).dtype; }

adj_node *nn_kept_param(adj_node *x, const char *layer, const char *part, adj_shape shape,
                        adj_init init)
{
    adj_graph *g = adj_node_graph(x);
    nn_name name = nn_join(g, layer, part);
    return name.s[0] != 0 ? adj_param(g, name.s, nn_kept_dtype(dtype_of(x)), shape, init) : NULL;
}

adj_node *nn_param(adj_node *x, const char *layer, const char *part, adj_shape shape, adj_init init)
{
    return adj_in_dtype(nn_kept_param(x, layer, part, shape, init), dtype_of(x));
}

adj_init nn_weights_init(adj_weight_init weights, adj_init given, int64_t fan_in, int64_t fan_out)
{
    return weights == ADJ_INIT_GIVEN ? given : adj_init_from_fans(weights, fan_in, fan_out);
}

adj_node *nn_with_bias(adj_node *y, const char *layer, int64_t n, int no_bias, adj_format format)
{
    if (y == NULL || no_bias)
        return adj_label(y, layer);
    adj_node *b = nn_param(y, layer, "b", (adj_shape){1, {n}}, adj_init_constant(0));
    return adj_label(adj_bias_add(y, b, format), layer);
}

/* ---- dense ---- */

typedef struct {
    int64_t units;
    const adj_dense_layer *options;
} dense_args;

static adj_node *build_dense(adj_node *x, const char *name, const void *args)
{
    const adj_dense_layer none = {0};
    const dense_args *a = args;
    const adj_dense_layer *o = a->options != NULL ? a->options : &none;
    adj_shape s = adj_node_type(x).shape;
    int64_t features = 1; /* x's size is checked: only an empty batch lets the product overflow */
    for (int i = 1; i < s.rank; i++)
        if (__builtin_mul_overflow(features, s.dim[i], &features))
            features = 0;
    if (s.rank < 1 || features < 1 || !nn_is_size(a->units)) {
        adj_fail(adj_node_graph(x), s.rank < 1 || features < 1 ? ADJ_ESHAPE : ADJ_EARG,
                 "input or units is out of range (got rank %lld, %lld features, %lld units, "
                 "expected 1 or more of each)",
                 (long long)s.rank, (long long)features, (long long)a->units);
        return NULL;
    }
    adj_node *rows = s.rank == 2 ? x : adj_reshape(x, (adj_shape){2, {s.dim[0], features}});
    adj_init init = nn_weights_init(o->init, o->given, features, a->units);
    adj_node *w = nn_param(x, name, "w", (adj_shape){2, {features, a->units}}, init);
    return nn_with_bias(adj_matmul(rows, w, 0), name, a->units, o->no_bias, ADJ_NHWC);
}

adj_node *adj_layer_dense(adj_node *x, const char *name, int64_t units,
                          const adj_dense_layer *options)
{
    return nn_in_layer(x, name, build_dense, &(dense_args){units, options});
}

/* ---- prelu ---- */

static adj_node *build_prelu(adj_node *x, const char *name, const void *format)
{
    const adj_format f = *(const adj_format *)format;
    const adj_shape s = adj_node_type(x).shape;
    if (s.rank < 2) {
        adj_fail(adj_node_graph(x), ADJ_ESHAPE,
                 "input has the wrong rank (got %lld, expected 2 to 5)", (long long)s.rank);
        return NULL;
    }
    const adj_shape channels = {1, {s.dim[f == ADJ_NCHW ? 1 : s.rank - 1]}};
    adj_node *slope = nn_param(x, name, "slope", channels, adj_init_constant(0.25));
    return adj_label(adj_prelu(x, slope, f), name);
}

adj_node *adj_layer_prelu(adj_node *x, const char *name, adj_format format)
{
    return nn_in_layer(x, name, build_prelu, &format);
}

/* ---- layers without parameters, on NHWC images ---- */

static adj_pool square_pool(int64_t size)
{
    return (adj_pool){.ksize = {1, size, size, 1}, .stride = {1, size, size, 1}};
}

adj_node *adj_layer_max_pool(adj_node *x, int64_t size)
{
    const adj_pool pool = square_pool(size);
    return adj_max_pool(x, &pool);
}

adj_node *adj_layer_avg_pool(adj_node *x, int64_t size)
{
    const adj_pool pool = square_pool(size);
    return adj_avg_pool(x, &pool);
}

adj_node *adj_layer_global_avg_pool(adj_node *x) { return adj_global_avg_pool(x, ADJ_NHWC); }

adj_node *adj_layer_upsample(adj_node *x, int64_t factor)
{
    if (x == NULL)
        return NULL;
    const adj_shape s = adj_node_type(x).shape;
    int64_t h, w;
    if (s.rank != 4 || factor < 1 || __builtin_mul_overflow(s.dim[1], factor, &h) ||
        __builtin_mul_overflow(s.dim[2], factor, &w)) {
        adj_fail(adj_node_graph(x), s.rank != 4 ? ADJ_ESHAPE : ADJ_EARG,
                 "upsample: input or factor is out of range (got rank %lld and factor %lld, "
                 "expected rank 4 and 1 or more)",
                 (long long)s.rank, (long long)factor);
        return NULL;
    }
    return adj_resize(x, h, w, &(adj_sampling){.coordinates = ADJ_ASYMMETRIC});
}
