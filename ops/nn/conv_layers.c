/* conv_layers.c - convolution layers, which create their filters and biases.
 *
 * Sizes that determine a parameter's shape are checked here, all others by the ops. */
#include "nn.h"

/* A layer's options with their defaults filled in. */
typedef struct {
    adj_conv conv;
    int64_t kh, kw, groups, multiplier;
    int64_t c; /* channels of x */
} conv_plan;

/* {0, 0} means both are the default, {k, 0} means {k, k}. */
static void fill_pair(const int64_t given[2], int64_t fallback, int64_t *first, int64_t *second)
{
    *first = given[0] != 0 ? given[0] : fallback;
    *second = given[1] != 0 ? given[1] : given[0] != 0 ? given[0] : fallback;
}

static conv_plan plan_conv(adj_node *x, const adj_conv_layer *o)
{
    conv_plan p = {.conv = {.padding = o->padding, .format = o->format},
                   .groups = o->groups != 0 ? o->groups : 1,
                   .multiplier = o->multiplier != 0 ? o->multiplier : 1,
                   .c = adj_node_type(x).shape.dim[o->format == ADJ_NCHW ? 1 : 3]};
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
        adj_fail(adj_node_graph(x), ADJ_EARG, "pad requires EXPLICIT padding (got %lld and %lld)",
                 (long long)o->pad[0], (long long)o->pad[1]);
    }
    return p;
}

/* Checks the sizes that determine the parameters' shapes. */
static adj_status check_conv(adj_node *x, const conv_plan *p, int64_t filters)
{
    adj_graph *g = adj_node_graph(x);
    adj_shape s = adj_node_type(x).shape;

    if (s.rank != 4)
        return adj_fail(g, ADJ_ESHAPE, "input has the wrong rank (got %lld, expected 4)",
                        (long long)s.rank);
    if (!nn_is_size(filters))
        return adj_fail(g, ADJ_EARG, "filters is out of range (got %lld, expected 1 or more)",
                        (long long)filters);
    if (!nn_is_size(p->kh) || !nn_is_size(p->kw))
        return adj_fail(g, ADJ_EARG, "kernel is out of range (got %lldx%lld, expected 1 or more)",
                        (long long)p->kh, (long long)p->kw);
    if (!nn_is_size(p->multiplier) || !nn_is_size(p->c) || p->c > INT32_MAX / p->multiplier)
        return adj_fail(g, ADJ_EARG,
                        "multiplier or input's channels is out of range (got %lld and %lld, "
                        "expected 1 or more)",
                        (long long)p->multiplier, (long long)p->c);
    if (p->groups < 1 || p->c % p->groups != 0)
        return adj_fail(g, ADJ_ESHAPE, "groups do not divide input's channels (got %lld of %lld)",
                        (long long)p->groups, (long long)p->c);
    return adj_graph_status(g);
}

static adj_node *build_conv2d(adj_node *x, const char *name, const void *options)
{
    const adj_conv_layer none = {0}, *o = options != NULL ? options : &none;
    conv_plan p = plan_conv(x, o);

    if (check_conv(x, &p, o->filters) != ADJ_OK)
        return NULL;
    int64_t c = p.c / p.groups, area = p.kh * p.kw;
    adj_init init = nn_weights_init(o->init, o->given, area * c, area * o->filters / p.groups);
    adj_node *w = nn_param(x, name, "w", (adj_shape){4, {p.kh, p.kw, c, o->filters}}, init);
    return nn_with_bias(adj_conv2d(x, w, &p.conv), name, o->filters, o->no_bias, o->format);
}

adj_node *adj_layer_conv2d(adj_node *x, const char *name, const adj_conv_layer *options)
{
    return nn_in_layer(x, name, build_conv2d, options);
}

/* Creates a depthwise filter. Each sees one channel, so fan_in is the kernel's area. */
static adj_node *depthwise_filter(adj_node *x, const char *name, const char *part,
                                  const conv_plan *p, const adj_conv_layer *o)
{
    int64_t area = p->kh * p->kw;
    adj_init init = nn_weights_init(o->init, o->given, area, area * p->multiplier);

    return nn_param(x, name, part, (adj_shape){4, {p->kh, p->kw, p->c, p->multiplier}}, init);
}

static adj_node *build_depthwise_conv2d(adj_node *x, const char *name, const void *options)
{
    const adj_conv_layer none = {0}, *o = options != NULL ? options : &none;
    conv_plan p = plan_conv(x, o);

    if (check_conv(x, &p, 1) != ADJ_OK)
        return NULL;
    adj_node *w = depthwise_filter(x, name, "w", &p, o);
    adj_node *y = adj_depthwise_conv2d_native(x, w, &p.conv);
    return nn_with_bias(y, name, p.c * p.multiplier, o->no_bias, o->format);
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
    adj_init init = nn_weights_init(o->init, o->given, between, o->filters);
    adj_node *depthwise = depthwise_filter(x, name, "depthwise", &p, o);
    adj_node *pointwise =
        nn_param(x, name, "pointwise", (adj_shape){4, {1, 1, between, o->filters}}, init);
    adj_node *y = adj_separable_conv2d(x, depthwise, pointwise, &p.conv);
    return nn_with_bias(y, name, o->filters, o->no_bias, o->format);
}

adj_node *adj_layer_separable_conv2d(adj_node *x, const char *name, const adj_conv_layer *options)
{
    return nn_in_layer(x, name, build_separable_conv2d, options);
}

/* Returns the size along one axis whose convolution with that stride and padding has n outputs:
 * the smallest one, or n * stride for SAME. */
static int64_t transposed_size(int64_t n, int64_t kernel, int64_t stride, int64_t dilation,
                               adj_padding padding, const int64_t pad[2])
{
    if (n < 1 || n > INT32_MAX || stride < 1 || stride > INT32_MAX)
        return 0; /* refused by the op */
    if (padding == ADJ_SAME)
        return n * stride;
    return (n - 1) * stride + (kernel - 1) * dilation + 1 - pad[0] - pad[1];
}

static adj_node *build_conv2d_transpose(adj_node *x, const char *name, const void *options)
{
    const adj_conv_layer none = {0}, *o = options != NULL ? options : &none;
    conv_plan p = plan_conv(x, o);
    if (check_conv(x, &p, o->filters) != ADJ_OK)
        return NULL;
    if (p.groups != 1) {
        adj_fail(adj_node_graph(x), ADJ_EARG,
                 "groups must be 1 in a transposed convolution (got %lld, expected 1)",
                 (long long)p.groups);
        return NULL;
    }
    const int h = o->format == ADJ_NCHW ? 2 : 1, w = h + 1, c = o->format == ADJ_NCHW ? 1 : 3;
    const adj_conv *a = &p.conv;
    adj_shape out = adj_node_type(x).shape;
    out.dim[h] =
        transposed_size(out.dim[h], p.kh, a->stride[h], a->dilation[h], a->padding, a->pad[h]);
    out.dim[w] =
        transposed_size(out.dim[w], p.kw, a->stride[w], a->dilation[w], a->padding, a->pad[w]);
    out.dim[c] = o->filters;
    const int64_t area = p.kh * p.kw;
    adj_init init = nn_weights_init(o->init, o->given, area * p.c, area * o->filters);
    adj_node *filter = nn_param(x, name, "w", (adj_shape){4, {p.kh, p.kw, o->filters, p.c}}, init);
    return nn_with_bias(adj_conv2d_transpose(x, filter, out, a), name, o->filters, o->no_bias,
                        o->format);
}

adj_node *adj_layer_conv2d_transpose(adj_node *x, const char *name, const adj_conv_layer *options)
{
    return nn_in_layer(x, name, build_conv2d_transpose, options);
}
