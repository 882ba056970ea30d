/* layers.c - layers: builders that make their parameters as well.
 *
 * A layer "conv1" owns the leaves "conv1/w", "conv1/b", ... and labels its result "conv1". Sizes
 * that a parameter's shape is computed from are checked here; everything else by the ops. */
#include <stdio.h>
#include <string.h>

#include "nn.h"

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

adj_node *nn_cast(adj_node *x, adj_dtype dtype)
{
    if (x == NULL || adj_node_type(x).dtype == dtype)
        return x;
    return adj_cast(x, dtype);
}

adj_node *nn_state(adj_graph *g, const char *name, adj_dtype dtype, adj_shape shape, double value)
{
    adj_node *found = adj_find(g, name);

    if (found != NULL && adj_node_is_state(found))
        return found;
    return adj_state(g, name, dtype, shape, adj_init_constant(value));
}

static adj_dtype dtype_of(const adj_node *x) { return adj_node_type(x).dtype; }

static int64_t channels_of(const adj_node *x, adj_format format)
{
    return adj_node_type(x).shape.dim[format == ADJ_NCHW ? 1 : 3];
}

/* The layer's parameter, in x's type. */
static adj_node *param(adj_node *x, const char *layer, const char *part, adj_shape shape,
                       adj_init init)
{
    adj_graph *g = adj_node_graph(x);
    nn_name name = nn_join(g, layer, part);

    if (name.s[0] == 0)
        return NULL;
    return nn_cast(adj_param(g, name.s, nn_kept_dtype(dtype_of(x)), shape, init), dtype_of(x));
}

static adj_init weights_init(adj_weight_init weights, adj_init given, int64_t fan_in,
                             int64_t fan_out)
{
    switch (weights) {
    case ADJ_HE_UNIFORM: return adj_init_he_uniform(fan_in);
    case ADJ_GLOROT_NORMAL: return adj_init_glorot_normal(fan_in, fan_out);
    case ADJ_GLOROT_UNIFORM: return adj_init_glorot_uniform(fan_in, fan_out);
    case ADJ_INIT_GIVEN: return given;
    default: return adj_init_he_normal(fan_in);
    }
}

/* ---- convolutions ---- */

/* A layer's options with their defaults filled in. */
typedef struct {
    adj_conv conv;
    int64_t kh, kw, groups, multiplier;
    int64_t c; /* x's channels */
} conv_plan;

/* {0, 0} means both are the default, {k, 0} means {k, k}. */
static void fill_pair(const int64_t given[2], int64_t fallback, int64_t *first, int64_t *second)
{
    *first = given[0] != 0 ? given[0] : fallback;
    *second = given[1] != 0 ? given[1] : given[0] != 0 ? given[0] : fallback;
}

static int in_range(int64_t n) { return n >= 1 && n <= INT32_MAX; }

static conv_plan plan_conv(adj_node *x, const adj_conv_layer *o)
{
    conv_plan p = {.conv = {.padding = o->padding, .format = o->format},
                   .groups = o->groups != 0 ? o->groups : 1,
                   .multiplier = o->multiplier != 0 ? o->multiplier : 1,
                   .c = channels_of(x, o->format)};
    int h = o->format == ADJ_NCHW ? 2 : 1, w = h + 1;

    fill_pair(o->kernel, 3, &p.kh, &p.kw);
    for (int i = 0; i < 4; i++)
        p.conv.stride[i] = p.conv.dilation[i] = 1;
    fill_pair(o->stride, 1, &p.conv.stride[h], &p.conv.stride[w]);
    fill_pair(o->dilation, 1, &p.conv.dilation[h], &p.conv.dilation[w]);
    if (o->padding == ADJ_EXPLICIT) {
        p.conv.pad[h][0] = p.conv.pad[h][1] = o->pad[0];
        p.conv.pad[w][0] = p.conv.pad[w][1] = o->pad[1] != 0 ? o->pad[1] : o->pad[0];
    } else if (o->pad[0] != 0 || o->pad[1] != 0) {
        adj_fail(adj_node_graph(x), ADJ_EARG,
                 "pad is given without EXPLICIT padding (got %lld and %lld)", (long long)o->pad[0],
                 (long long)o->pad[1]);
    }
    return p;
}

/* What the shapes of parameters are computed from must be sizes. */
static adj_status check_conv(adj_node *x, const conv_plan *p, int64_t filters)
{
    adj_graph *g = adj_node_graph(x);
    adj_shape s = adj_node_type(x).shape;

    if (s.rank != 4)
        return adj_fail(g, ADJ_ESHAPE, "input has the wrong rank (got %lld, expected 4)",
                        (long long)s.rank);
    if (!in_range(filters))
        return adj_fail(g, ADJ_EARG, "filters is no size (got %lld, expected 1 or more)",
                        (long long)filters);
    if (!in_range(p->kh) || !in_range(p->kw))
        return adj_fail(g, ADJ_EARG, "kernel is no size (got %lldx%lld, expected 1 or more)",
                        (long long)p->kh, (long long)p->kw);
    if (!in_range(p->multiplier) || !in_range(p->c) || p->c > INT32_MAX / p->multiplier)
        return adj_fail(g, ADJ_EARG,
                        "multiplier or input's channels is no size (got %lld and %lld)",
                        (long long)p->multiplier, (long long)p->c);
    if (p->groups < 1 || p->c % p->groups != 0)
        return adj_fail(g, ADJ_ESHAPE, "groups do not divide input's channels (got %lld of %lld)",
                        (long long)p->groups, (long long)p->c);
    return adj_graph_status(g);
}

static adj_node *with_bias(adj_node *y, const char *layer, int64_t n, int no_bias,
                           adj_format format)
{
    if (y == NULL || no_bias)
        return adj_label(y, layer);
    adj_node *b = param(y, layer, "b", (adj_shape){1, {n}}, adj_init_constant(0));
    return adj_label(adj_bias_add(y, b, format), layer);
}

static adj_node *build_conv2d(adj_node *x, const char *name, const void *options)
{
    const adj_conv_layer none = {0}, *o = options != NULL ? options : &none;
    conv_plan p = plan_conv(x, o);

    if (check_conv(x, &p, o->filters) != ADJ_OK)
        return NULL;
    int64_t c = p.c / p.groups, area = p.kh * p.kw;
    adj_init init = weights_init(o->init, o->given, area * c, area * o->filters / p.groups);
    adj_node *w = param(x, name, "w", (adj_shape){4, {p.kh, p.kw, c, o->filters}}, init);
    return with_bias(adj_conv2d(x, w, &p.conv), name, o->filters, o->no_bias, o->format);
}

adj_node *adj_layer_conv2d(adj_node *x, const char *name, const adj_conv_layer *options)
{
    return nn_in_layer(x, name, build_conv2d, options);
}

/* A depthwise filter sees one channel: fan_in is the kernel's area. */
static adj_node *depthwise_filter(adj_node *x, const char *name, const char *part,
                                  const conv_plan *p, const adj_conv_layer *o)
{
    int64_t area = p->kh * p->kw;
    adj_init init = weights_init(o->init, o->given, area, area * p->multiplier);

    return param(x, name, part, (adj_shape){4, {p->kh, p->kw, p->c, p->multiplier}}, init);
}

static adj_node *build_depthwise_conv2d(adj_node *x, const char *name, const void *options)
{
    const adj_conv_layer none = {0}, *o = options != NULL ? options : &none;
    conv_plan p = plan_conv(x, o);

    if (check_conv(x, &p, 1) != ADJ_OK)
        return NULL;
    adj_node *w = depthwise_filter(x, name, "w", &p, o);
    adj_node *y = adj_depthwise_conv2d_native(x, w, &p.conv);
    return with_bias(y, name, p.c * p.multiplier, o->no_bias, o->format);
}

adj_node *adj_layer_depthwise_conv2d(adj_node *x, const char *name, const adj_conv_layer *options)
{
    return nn_in_layer(x, name, build_depthwise_conv2d, options);
}

static adj_node *build_separable_conv2d(adj_node *x, const char *name, const void *options)
{
    const adj_conv_layer none = {0}, *o = options != NULL ? options : &none;
    conv_plan p = plan_conv(x, o);

    if (check_conv(x, &p, o->filters) != ADJ_OK)
        return NULL;
    int64_t between = p.c * p.multiplier;
    adj_init init = weights_init(o->init, o->given, between, o->filters);
    adj_node *depthwise = depthwise_filter(x, name, "depthwise", &p, o);
    adj_node *pointwise =
        param(x, name, "pointwise", (adj_shape){4, {1, 1, between, o->filters}}, init);
    adj_node *y = adj_separable_conv2d(x, depthwise, pointwise, &p.conv);
    return with_bias(y, name, o->filters, o->no_bias, o->format);
}

adj_node *adj_layer_separable_conv2d(adj_node *x, const char *name, const adj_conv_layer *options)
{
    return nn_in_layer(x, name, build_separable_conv2d, options);
}

/* ---- dense ---- */

static adj_node *build_dense(adj_node *x, const char *name, const void *options)
{
    const adj_dense_layer none = {0}, *o = options != NULL ? options : &none;
    adj_shape s = adj_node_type(x).shape;
    int64_t features = 1; /* the input's size is checked, so the product cannot overflow unless
                             the batch is empty */
    for (int i = 1; i < s.rank; i++)
        if (__builtin_mul_overflow(features, s.dim[i], &features))
            features = 0;
    if (s.rank < 1 || features < 1 || !in_range(o->units)) {
        adj_fail(adj_node_graph(x), s.rank < 1 || features < 1 ? ADJ_ESHAPE : ADJ_EARG,
                 "input or units is no size (got rank %lld, %lld features, %lld units, "
                 "expected 1 or more of each)",
                 (long long)s.rank, (long long)features, (long long)o->units);
        return NULL;
    }
    adj_node *rows = s.rank == 2 ? x : adj_reshape(x, (adj_shape){2, {s.dim[0], features}});
    adj_init init = weights_init(o->init, o->given, features, o->units);
    adj_node *w = param(x, name, "w", (adj_shape){2, {features, o->units}}, init);
    return with_bias(adj_matmul(rows, w, 0), name, o->units, o->no_bias, ADJ_NHWC);
}

adj_node *adj_layer_dense_with(adj_node *x, const char *name, const adj_dense_layer *options)
{
    return nn_in_layer(x, name, build_dense, options);
}

adj_node *adj_layer_dense(adj_node *x, const char *name, int64_t units)
{
    return adj_layer_dense_with(x, name, &(adj_dense_layer){.units = units});
}
