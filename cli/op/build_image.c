/* build_image.c - see build.h: convolutions, pools, resize, bias, prelu, batch and group norm. */
#include "build.h"

/* ---- convolutions ---- */

static int conv_attrs(op_case *c, adj_conv *a)
{
    return adj_conv_from_attrs(&c->lists, a, c->message, sizeof c->message) == ADJ_OK;
}

static adj_node *w_of(op_case *c, int64_t outputs)
{
    return operand_second(c, (adj_shape){4, {3, 3, channels_of(c), outputs}});
}

typedef struct {
    adj_conv a;
    adj_node *x, *w, *y, *dy;
} convolution;

static convolution conv_of(op_case *c, int depthwise)
{
    convolution v = {0};
    if (!conv_attrs(c, &v.a))
        return v;
    v.x = operand_x(c);
    v.w = w_of(c, depthwise ? 2 : 4);
    v.y = depthwise ? adj_depthwise_conv2d_native(v.x, v.w, &v.a) : adj_conv2d(v.x, v.w, &v.a);
    v.dy = operand_like(c, v.y);
    return v;
}

static adj_node *conv2d(op_case *c) { return conv_of(c, 0).y; }
static adj_node *conv2d_backprop_input(op_case *c)
{
    convolution v = conv_of(c, 0);
    return adj_conv2d_backprop_input(c->in, v.w, v.dy, &v.a);
}
static adj_node *conv2d_backprop_filter(op_case *c)
{
    convolution v = conv_of(c, 0);
    return v.dy != NULL ? adj_conv2d_backprop_filter(v.x, adj_node_type(v.w).shape, v.dy, &v.a)
                        : NULL;
}
static adj_node *depthwise(op_case *c) { return conv_of(c, 1).y; }
static adj_node *depthwise_backprop_input(op_case *c)
{
    convolution v = conv_of(c, 1);
    return adj_depthwise_conv2d_native_backprop_input(c->in, v.w, v.dy, &v.a);
}
static adj_node *depthwise_backprop_filter(op_case *c)
{
    convolution v = conv_of(c, 1);
    return v.dy != NULL ? adj_depthwise_conv2d_native_backprop_filter(v.x, adj_node_type(v.w).shape,
                                                                      v.dy, &v.a)
                        : NULL;
}

/* ---- pools ---- */

static int pool_attrs(op_case *c, adj_pool *a)
{
    static const int64_t nhwc[] = {1, 2, 2, 1}, nchw[] = {1, 1, 2, 2};
    if (c->lists.n_ksize == 0) {
        c->lists.ksize = c->format == ADJ_NCHW ? nchw : nhwc;
        c->lists.n_ksize = 4;
    }
    if (c->lists.n_strides == 0) {
        c->lists.strides = c->lists.ksize;
        c->lists.n_strides = c->lists.n_ksize;
    }
    return adj_pool_from_attrs(&c->lists, a, c->message, sizeof c->message) == ADJ_OK;
}

typedef struct {
    adj_pool a;
    adj_node *x, *y;
} pooling;

static pooling pool_of(op_case *c, int average)
{
    pooling p = {0};
    if (!pool_attrs(c, &p.a))
        return p;
    p.x = operand_x(c);
    p.y = average ? adj_avg_pool(p.x, &p.a) : adj_max_pool(p.x, &p.a);
    return p;
}

static adj_node *max_pool(op_case *c) { return pool_of(c, 0).y; }
static adj_node *max_pool_grad(op_case *c)
{
    pooling p = pool_of(c, 0);
    return adj_max_pool_grad(p.x, p.y, operand_like(c, p.y), &p.a);
}
static adj_node *max_pool_grad_grad(op_case *c)
{
    pooling p = pool_of(c, 0);
    return adj_max_pool_grad_grad(p.x, p.y, operand_like(c, p.x), &p.a);
}
static adj_node *avg_pool(op_case *c) { return pool_of(c, 1).y; }
static adj_node *avg_pool_grad(op_case *c)
{
    pooling p = pool_of(c, 1);
    return adj_avg_pool_grad(c->in, operand_like(c, p.y), &p.a);
}

/* ---- resize; --attr: height, width, mode, coordinates ---- */

static int twice(int64_t size) { return size < 1 << 30 ? (int)(2 * size) : INT32_MAX; }

static adj_node *resized(op_case *c, adj_node *x, int64_t h, int64_t w, adj_sampling *a)
{
    int64_t height = attr_int(c, 0, twice(h)), width = attr_int(c, 1, twice(w));
    *a = (adj_sampling){.mode = (adj_resize_mode)attr_int(c, 2, ADJ_BILINEAR),
                        .coordinates = (adj_coordinates)attr_int(c, 3, ADJ_HALF_PIXEL),
                        .format = c->format};
    return adj_resize(x, height, width, a);
}
static adj_node *resize(op_case *c)
{
    const int h = c->format == ADJ_NCHW ? 2 : 1;
    adj_sampling a;
    return resized(c, operand_x(c), c->in.dim[h], c->in.dim[h + 1], &a);
}
static adj_node *resize_grad(op_case *c)
{
    const int h = c->format == ADJ_NCHW ? 2 : 1;
    adj_sampling a;
    adj_node *y = resized(c, operand_x(c), c->in.dim[h], c->in.dim[h + 1], &a);
    return adj_resize_grad(operand_like(c, y), c->in.dim[h], c->in.dim[h + 1], &a);
}

/* ---- bias ---- */

static adj_node *bias_add(op_case *c)
{
    adj_node *x = operand_x(c), *b = operand(c, c->dtype, (adj_shape){1, {channels_of(c)}});
    return adj_bias_add(x, b, c->format);
}
static adj_node *bias_add_grad(op_case *c) { return adj_bias_add_grad(operand_x(c), c->format); }

/* ---- prelu; --filter: the slope; --attr of prelu_grad_slope: how many there are ---- */

static adj_node *slope_of(op_case *c)
{
    return operand_second(c, (adj_shape){1, {channels_of(c)}});
}
static adj_node *prelu(op_case *c)
{
    adj_node *x = operand_x(c);
    return adj_prelu(x, slope_of(c), c->format);
}
static adj_node *prelu_grad(op_case *c)
{
    adj_node *dy = operand_x(c), *x = operand_x(c);
    return adj_prelu_grad(dy, x, slope_of(c), c->format);
}
static adj_node *prelu_grad_slope(op_case *c)
{
    adj_node *dy = operand_x(c), *x = operand_x(c);
    int64_t slopes = c->n_attr > 0 ? attr_int(c, 0, 1) : channels_of(c);
    return adj_prelu_grad_slope(dy, x, slopes, c->format);
}

/* ---- batch norm; --attr: epsilon; 1: the statistics are given; 1: the sums are computed ---- */

/* [c], or [2, c], of the statistics type. */
static adj_node *per_channel(op_case *c, int rows)
{
    adj_dtype dtype = c->dtype == ADJ_F64 ? ADJ_F64 : ADJ_F32;
    adj_shape one = {1, {channels_of(c)}}, two = {2, {rows, channels_of(c)}};
    return operand(c, dtype, rows > 0 ? two : one);
}

static double epsilon(op_case *c) { return attr_real(c, 0, 1e-3); }

static adj_node *stats_of(op_case *c, adj_node *x)
{
    return attr_int(c, 1, 0) ? per_channel(c, 2) : adj_batch_norm_stats(x, c->format);
}

static adj_node *batch_norm_stats(op_case *c)
{
    return adj_batch_norm_stats(operand_x(c), c->format);
}
static adj_node *batch_norm(op_case *c)
{
    adj_node *x = operand_x(c), *stats = stats_of(c, x);
    adj_node *gamma = per_channel(c, 0), *beta = per_channel(c, 0);
    return adj_batch_norm(x, stats, gamma, beta, epsilon(c), c->format);
}
static adj_node *batch_norm_grad_sums(op_case *c)
{
    adj_node *x = operand_x(c), *stats = stats_of(c, x);
    return adj_batch_norm_grad_sums(x, stats, operand_x(c), epsilon(c), c->format);
}
static adj_node *batch_norm_grad(op_case *c)
{
    adj_node *x = operand_x(c), *stats = stats_of(c, x);
    adj_node *gamma = per_channel(c, 0), *dy = operand_x(c);
    adj_node *sums = attr_int(c, 2, 0)
                         ? adj_batch_norm_grad_sums(x, stats, dy, epsilon(c), c->format)
                         : per_channel(c, 2);
    return adj_batch_norm_grad(x, stats, gamma, dy, sums, epsilon(c), c->format);
}

/* ---- group norm, which layer norm is made of; --attr: epsilon; groups ---- */

static int groups(op_case *c) { return attr_int(c, 1, 1); }
static adj_node *group_norm(op_case *c)
{
    adj_node *x = operand_x(c), *gamma = per_channel(c, 0), *beta = per_channel(c, 0);
    return adj_group_norm(x, gamma, beta, groups(c), epsilon(c), c->format);
}
static adj_node *group_norm_grad_sums(op_case *c)
{
    adj_node *x = operand_x(c);
    return adj_group_norm_grad_sums(x, operand_x(c), groups(c), epsilon(c), c->format);
}
static adj_node *group_norm_grad(op_case *c)
{
    adj_node *x = operand_x(c), *gamma = per_channel(c, 0);
    return adj_group_norm_grad(x, gamma, operand_x(c), groups(c), epsilon(c), c->format);
}

const op_builder image_builders[] = {
    {"conv2d", conv2d},
    {"conv2d_backprop_input", conv2d_backprop_input},
    {"conv2d_backprop_filter", conv2d_backprop_filter},
    {"depthwise_conv2d_native", depthwise},
    {"depthwise_conv2d_native_backprop_input", depthwise_backprop_input},
    {"depthwise_conv2d_native_backprop_filter", depthwise_backprop_filter},
    {"max_pool", max_pool},
    {"max_pool_grad", max_pool_grad},
    {"max_pool_grad_grad", max_pool_grad_grad},
    {"avg_pool", avg_pool},
    {"avg_pool_grad", avg_pool_grad},
    {"resize", resize},
    {"resize_grad", resize_grad},
    {"bias_add", bias_add},
    {"bias_add_grad", bias_add_grad},
    {"prelu", prelu},
    {"prelu_grad", prelu_grad},
    {"prelu_grad_slope", prelu_grad_slope},
    {"batch_norm_stats", batch_norm_stats},
    {"batch_norm", batch_norm},
    {"batch_norm_grad_sums", batch_norm_grad_sums},
    {"batch_norm_grad", batch_norm_grad},
    {"group_norm", group_norm},
    {"group_norm_grad_sums", group_norm_grad_sums},
    {"group_norm_grad", group_norm_grad},
    {NULL, NULL},
};
