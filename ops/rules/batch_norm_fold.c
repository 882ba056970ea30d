/* batch_norm_fold.c - folds a batch norm with constant statistics and parameters into the
 * convolution before it:
 *
 *   (conv(x, w) - mean) * k + beta = conv(x, w * k) + (beta - mean * k),
 *   k = gamma / sqrt(var + epsilon) for each output channel
 *
 * A bias b of the convolution is a part of the mean: mean - b takes its place.
 *
 * The filter's last axes are the output channels: [kh, kw, c, oc], depthwise [kh, kw, c, m] for
 * channel c * m + i. */
#include "batch_norm.h"

static adj_node *row(adj_node *stats, int i)
{
    int64_t c = stats->type.shape.dim[1];
    adj_node *r = adj_slice(stats, (adj_shape){.rank = 2, .dim = {i, 0}},
                            (adj_shape){.rank = 2, .dim = {1, c}});
    return adj_reshape(r, (adj_shape){.rank = 1, .dim = {c}});
}

static adj_node *scaled_filter(const adj_node *conv, adj_node *k)
{
    adj_node *w = conv->in[1];
    const int64_t *dim = w->type.shape.dim;
    if (conv->op == &adj_op_depthwise_conv2d_native)
        k = adj_reshape(k, (adj_shape){.rank = 2, .dim = {dim[2], dim[3]}});
    return adj_mul(w, k);
}

adj_node *batch_norm_fold(const adj_node *n, adj_node *const in[])
{
    const adj_batch_norm_attrs *a = n->attrs;
    const adj_node *biased = in[0]->op == &adj_op_bias_add ? in[0] : NULL;
    const adj_node *conv = biased != NULL ? biased->in[0] : in[0];
    adj_node *stats = in[1], *gamma = in[2], *beta = in[3];
    if ((conv->op != &adj_op_conv2d && conv->op != &adj_op_depthwise_conv2d_native) ||
        conv->type.dtype != stats->type.dtype ||
        (int64_t)((const adj_conv_attrs *)conv->attrs)->conv.format != a->format)
        return NULL;
    adj_node *var = row(stats, 1);
    if (var == NULL)
        return NULL;
    adj_node *k = adj_div(gamma, adj_sqrt(adj_add(var, adj_fill_like(var, a->epsilon))));
    adj_node *mean = row(stats, 0);
    if (biased != NULL)
        mean = adj_sub(mean, biased->in[1]);
    adj_node *bias = adj_sub(beta, adj_mul(mean, k));
    adj_node *const operand[] = {conv->in[0], scaled_filter(conv, k)};
    adj_node *y = adj_node_new(stats->graph, conv->op, 2, operand, conv->attrs);
    return adj_bias_add(y, bias, (adj_format)a->format);
}
