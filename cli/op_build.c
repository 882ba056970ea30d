/* op_build.c - every op over operands that suit a shape. */
#include <stdio.h>

#include "op_args.h"

/* ---- operands ---- */

static adj_node *operand(op_case *c, adj_dtype dtype, adj_shape shape)
{
    char name[16];
    snprintf(name, sizeof name, "in%d", c->n++);
    return adj_input(c->g, name, dtype, shape);
}

static adj_node *like(op_case *c, const adj_node *n)
{
    return n != NULL ? operand(c, adj_node_type(n).dtype, adj_node_type(n).shape) : NULL;
}

static adj_node *x_of(op_case *c) { return operand(c, c->dtype, c->in); }
static adj_node *scalar(op_case *c, adj_dtype dtype) { return operand(c, dtype, (adj_shape){0}); }

static int64_t last(adj_shape s) { return s.rank > 0 ? s.dim[s.rank - 1] : 1; }

static int64_t channels(const op_case *c)
{
    return c->format == ADJ_NCHW && c->in.rank > 1 ? c->in.dim[1] : last(c->in);
}

/* [c], of the statistics type. */
static adj_node *per_channel(op_case *c, int rows)
{
    adj_dtype dtype = c->dtype == ADJ_F64 ? ADJ_F64 : ADJ_F32;
    adj_shape one = {1, {channels(c)}}, two = {2, {rows, channels(c)}};
    return operand(c, dtype, rows > 0 ? two : one);
}

/* [first dimension, everything else]. */
static adj_node *matrix(op_case *c)
{
    int64_t rows = c->in.rank > 0 ? c->in.dim[0] : 1, all = adj_shape_elems(c->in);
    return operand(c, c->dtype, (adj_shape){2, {rows, rows > 0 && all > 0 ? all / rows : 1}});
}

static adj_node *labels(op_case *c)
{
    return operand(c, ADJ_I32, (adj_shape){1, {c->in.rank > 0 ? c->in.dim[0] : 1}});
}

/* ---- convolutions and pools ---- */

static int conv_attrs(op_case *c, adj_conv *a)
{
    return adj_conv_from_attrs(&c->lists, a, c->message, sizeof c->message) == ADJ_OK;
}

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

static adj_node *w_of(op_case *c, int64_t outputs)
{
    adj_shape usual = {4, {3, 3, channels(c), outputs}};
    return operand(c, c->dtype, c->filter.rank > 0 ? c->filter : usual);
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
    v.x = x_of(c);
    v.w = w_of(c, depthwise ? 2 : 4);
    v.y = depthwise ? adj_depthwise_conv2d_native(v.x, v.w, &v.a) : adj_conv2d(v.x, v.w, &v.a);
    v.dy = like(c, v.y);
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

typedef struct {
    adj_pool a;
    adj_node *x, *y;
} pooling;

static pooling pool_of(op_case *c, int average)
{
    pooling p = {0};
    if (!pool_attrs(c, &p.a))
        return p;
    p.x = x_of(c);
    p.y = average ? adj_avg_pool(p.x, &p.a) : adj_max_pool(p.x, &p.a);
    return p;
}

static adj_node *max_pool(op_case *c) { return pool_of(c, 0).y; }
static adj_node *max_pool_grad(op_case *c)
{
    pooling p = pool_of(c, 0);
    return adj_max_pool_grad(p.x, p.y, like(c, p.y), &p.a);
}
static adj_node *max_pool_grad_grad(op_case *c)
{
    pooling p = pool_of(c, 0);
    return adj_max_pool_grad_grad(p.x, p.y, like(c, p.x), &p.a);
}
static adj_node *avg_pool(op_case *c) { return pool_of(c, 1).y; }
static adj_node *avg_pool_grad(op_case *c)
{
    pooling p = pool_of(c, 1);
    return adj_avg_pool_grad(c->in, like(c, p.y), &p.a);
}

/* ---- element by element ---- */

static adj_node *bias_add(op_case *c)
{
    adj_node *x = x_of(c), *b = operand(c, c->dtype, (adj_shape){1, {channels(c)}});
    return adj_bias_add(x, b, c->format);
}
static adj_node *bias_add_grad(op_case *c) { return adj_bias_add_grad(x_of(c), c->format); }
static adj_node *relu(op_case *c) { return adj_relu(x_of(c)); }
static adj_node *relu6(op_case *c) { return adj_relu6(x_of(c)); }
static adj_node *leaky_relu(op_case *c) { return adj_leaky_relu(x_of(c), 0.25); }
static adj_node *sigmoid(op_case *c) { return adj_sigmoid(x_of(c)); }
static adj_node *tanh_(op_case *c) { return adj_tanh(x_of(c)); }
static adj_node *silu(op_case *c) { return adj_silu(x_of(c)); }

typedef adj_node *(*binary)(adj_node *a, adj_node *b);

static adj_node *pair(op_case *c, binary build)
{
    adj_node *a = x_of(c), *b = x_of(c);
    return build(a, b);
}

/* The second operand is stretched over all axes but the last. */
static adj_node *stretched(op_case *c, binary build)
{
    adj_node *a = x_of(c);
    adj_shape row = {c->in.rank > 0, {last(c->in)}};
    return build(a, operand(c, c->dtype, row));
}

static adj_node *relu_grad(op_case *c) { return pair(c, adj_relu_grad); }
static adj_node *relu6_grad(op_case *c) { return pair(c, adj_relu6_grad); }
static adj_node *leaky(adj_node *dy, adj_node *y) { return adj_leaky_relu_grad(dy, y, 0.25); }
static adj_node *leaky_relu_grad(op_case *c) { return pair(c, leaky); }
static adj_node *sigmoid_grad(op_case *c) { return pair(c, adj_sigmoid_grad); }
static adj_node *tanh_grad(op_case *c) { return pair(c, adj_tanh_grad); }
static adj_node *silu_grad(op_case *c) { return pair(c, adj_silu_grad); }
static adj_node *add(op_case *c) { return stretched(c, adj_add); }
static adj_node *sub(op_case *c) { return stretched(c, adj_sub); }
static adj_node *mul(op_case *c) { return stretched(c, adj_mul); }
static adj_node *div_(op_case *c) { return stretched(c, adj_div); }
static adj_node *maximum(op_case *c) { return pair(c, adj_maximum); }
static adj_node *minimum(op_case *c) { return pair(c, adj_minimum); }
static adj_node *equal(op_case *c) { return pair(c, adj_equal); }
static adj_node *greater_equal(op_case *c) { return pair(c, adj_greater_equal); }
static adj_node *neg(op_case *c) { return adj_neg(x_of(c)); }
static adj_node *scale(op_case *c) { return adj_scale(x_of(c), 0.3); }
static adj_node *square(op_case *c) { return adj_square(x_of(c)); }
static adj_node *sqrt_(op_case *c) { return adj_sqrt(x_of(c)); }
static adj_node *exp_(op_case *c) { return adj_exp(x_of(c)); }
static adj_node *log_(op_case *c) { return adj_log(x_of(c)); }
static adj_node *cast(op_case *c)
{
    return adj_cast(x_of(c), c->dtype == ADJ_F32 ? ADJ_F64 : ADJ_F32);
}
static adj_node *stop_gradient(op_case *c) { return adj_stop_gradient(x_of(c)); }

/* ---- matrices and shapes ---- */

static adj_node *matmul(op_case *c)
{
    adj_node *a = matrix(c);
    adj_shape usual = {2, {a != NULL ? adj_node_type(a).shape.dim[1] : 0, 4}};
    return adj_matmul(a, operand(c, c->dtype, c->filter.rank > 0 ? c->filter : usual), 0, 0);
}
static adj_node *reshape(op_case *c) { return adj_reshape(x_of(c), (adj_shape){1, {-1}}); }
static adj_node *transpose(op_case *c)
{
    int perm[ADJ_MAX_RANK];
    for (int i = 0; i < c->in.rank; i++)
        perm[i] = (int)c->in.rank - 1 - i;
    return adj_transpose(x_of(c), perm);
}
static adj_node *concat(op_case *c)
{
    adj_node *a = x_of(c), *b = x_of(c), *const both[] = {a, b};
    return adj_concat(2, both, -1);
}
static adj_node *pad(op_case *c)
{
    adj_shape before = c->in, after = c->in;
    for (int i = 0; i < c->in.rank; i++)
        before.dim[i] = 1, after.dim[i] = 2;
    return adj_pad(x_of(c), before, after);
}
static adj_node *slice(op_case *c)
{
    adj_shape begin = c->in, size = c->in;
    for (int i = 0; i < c->in.rank; i++) {
        begin.dim[i] = c->in.dim[i] / 3;
        size.dim[i] -= begin.dim[i];
    }
    return adj_slice(x_of(c), begin, size);
}
static adj_node *broadcast_to(op_case *c)
{
    adj_shape from = {1, {last(c->in)}};
    return adj_broadcast_to(operand(c, c->dtype, c->in.rank > 0 ? from : c->in), c->in);
}

static const adj_axes last_axis = {.n = 1, .axis = {-1}};

static adj_node *reduce_sum(op_case *c) { return adj_reduce_sum(x_of(c), last_axis); }
static adj_node *reduce_mean(op_case *c) { return adj_reduce_mean(x_of(c), last_axis); }
static adj_node *reduce_max(op_case *c) { return adj_reduce_max(x_of(c), last_axis); }

/* ---- normalisation, loss, dropout ---- */

static const double epsilon = 1e-3;

static adj_node *batch_norm_stats(op_case *c) { return adj_batch_norm_stats(x_of(c), c->format); }
static adj_node *batch_norm(op_case *c)
{
    adj_node *x = x_of(c), *stats = adj_batch_norm_stats(x, c->format);
    adj_node *gamma = per_channel(c, 0), *beta = per_channel(c, 0);
    return adj_batch_norm(x, stats, gamma, beta, epsilon, c->format);
}
static adj_node *batch_norm_grad_sums(op_case *c)
{
    adj_node *x = x_of(c), *stats = adj_batch_norm_stats(x, c->format);
    return adj_batch_norm_grad_sums(x, stats, x_of(c), epsilon, c->format);
}
static adj_node *batch_norm_grad(op_case *c)
{
    adj_node *x = x_of(c), *stats = adj_batch_norm_stats(x, c->format);
    adj_node *gamma = per_channel(c, 0), *dy = x_of(c), *sums = per_channel(c, 2);
    return adj_batch_norm_grad(x, stats, gamma, dy, sums, epsilon, c->format);
}
static adj_node *softmax(op_case *c) { return adj_softmax(matrix(c)); }
static adj_node *log_softmax(op_case *c) { return adj_log_softmax(matrix(c)); }
static adj_node *cross_entropy(op_case *c)
{
    adj_node *z = matrix(c), *t = matrix(c);
    return adj_softmax_cross_entropy(z, t, 0.1);
}
static adj_node *cross_entropy_grad(op_case *c)
{
    adj_node *z = matrix(c), *t = matrix(c);
    return adj_softmax_cross_entropy_grad(z, t, 0.1);
}
static adj_node *sparse_cross_entropy(op_case *c)
{
    adj_node *z = matrix(c);
    return adj_sparse_softmax_cross_entropy(z, labels(c), 0.1);
}
static adj_node *sparse_cross_entropy_grad(op_case *c)
{
    adj_node *z = matrix(c);
    return adj_sparse_softmax_cross_entropy_grad(z, labels(c), 0.1);
}
static adj_node *label_count(op_case *c) { return adj_label_count(labels(c), c->dtype); }
static adj_node *dropout(op_case *c)
{
    adj_node *x = x_of(c);
    return adj_dropout(x, scalar(c, ADJ_I32), 0.25, 1);
}

/* ---- optimisers and leaves ---- */

static adj_node *momentum(op_case *c)
{
    adj_node *v = x_of(c), *g = x_of(c), *p = x_of(c);
    return adj_momentum(v, g, p, 0.9, 1e-4);
}
static adj_node *sgd_step(op_case *c)
{
    adj_node *p = x_of(c), *d = x_of(c);
    return adj_sgd_step(p, d, scalar(c, c->dtype), 1e-4);
}
static adj_node *ema(op_case *c)
{
    adj_node *m = x_of(c), *x = x_of(c);
    return adj_ema(m, x, 0.9);
}
static adj_node *adam_step(op_case *c)
{
    const adj_adam_attrs a = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};
    adj_node *p = x_of(c), *m = x_of(c), *v = x_of(c), *t = scalar(c, ADJ_I32);
    return adj_adam_step(p, m, v, t, scalar(c, c->dtype), &a);
}
static adj_node *next_step(op_case *c) { return adj_next_step(scalar(c, ADJ_I32)); }
static adj_node *input(op_case *c) { return x_of(c); }
static adj_node *param(op_case *c)
{
    return adj_param(c->g, "p", c->dtype, c->in, (adj_init){ADJ_INIT_NORMAL, 0, 1});
}
static adj_node *state(op_case *c)
{
    return adj_state(c->g, "s", c->dtype, c->in, (adj_init){ADJ_INIT_CONSTANT, 0, 0});
}
static adj_node *fill(op_case *c) { return adj_fill(c->g, c->dtype, c->in, 1); }
static adj_node *const_(op_case *c)
{
    const double zero = 0; /* 0 in every type */
    return adj_const(c->g, c->dtype, (adj_shape){0}, &zero);
}

const op_builder op_builders[] = {
    {"conv2d", conv2d},
    {"conv2d_backprop_input", conv2d_backprop_input},
    {"conv2d_backprop_filter", conv2d_backprop_filter},
    {"depthwise_conv2d_native", depthwise},
    {"depthwise_conv2d_native_backprop_input", depthwise_backprop_input},
    {"depthwise_conv2d_native_backprop_filter", depthwise_backprop_filter},
    {"bias_add", bias_add},
    {"bias_add_grad", bias_add_grad},
    {"relu", relu},
    {"relu6", relu6},
    {"leaky_relu", leaky_relu},
    {"sigmoid", sigmoid},
    {"tanh", tanh_},
    {"silu", silu},
    {"relu_grad", relu_grad},
    {"relu6_grad", relu6_grad},
    {"leaky_relu_grad", leaky_relu_grad},
    {"sigmoid_grad", sigmoid_grad},
    {"tanh_grad", tanh_grad},
    {"silu_grad", silu_grad},
    {"add", add},
    {"sub", sub},
    {"mul", mul},
    {"div", div_},
    {"maximum", maximum},
    {"minimum", minimum},
    {"equal", equal},
    {"greater_equal", greater_equal},
    {"neg", neg},
    {"scale", scale},
    {"square", square},
    {"sqrt", sqrt_},
    {"exp", exp_},
    {"log", log_},
    {"cast", cast},
    {"stop_gradient", stop_gradient},
    {"matmul", matmul},
    {"reshape", reshape},
    {"transpose", transpose},
    {"concat", concat},
    {"pad", pad},
    {"slice", slice},
    {"broadcast_to", broadcast_to},
    {"reduce_sum", reduce_sum},
    {"reduce_mean", reduce_mean},
    {"reduce_max", reduce_max},
    {"max_pool", max_pool},
    {"max_pool_grad", max_pool_grad},
    {"max_pool_grad_grad", max_pool_grad_grad},
    {"avg_pool", avg_pool},
    {"avg_pool_grad", avg_pool_grad},
    {"batch_norm_stats", batch_norm_stats},
    {"batch_norm", batch_norm},
    {"batch_norm_grad_sums", batch_norm_grad_sums},
    {"batch_norm_grad", batch_norm_grad},
    {"softmax", softmax},
    {"log_softmax", log_softmax},
    {"softmax_cross_entropy", cross_entropy},
    {"softmax_cross_entropy_grad", cross_entropy_grad},
    {"sparse_softmax_cross_entropy", sparse_cross_entropy},
    {"sparse_softmax_cross_entropy_grad", sparse_cross_entropy_grad},
    {"label_count", label_count},
    {"dropout", dropout},
    {"momentum", momentum},
    {"sgd_step", sgd_step},
    {"ema", ema},
    {"adam_step", adam_step},
    {"next_step", next_step},
    {"input", input},
    {"param", param},
    {"state", state},
    {"const", const_},
    {"fill", fill},
    {NULL, NULL},
};
