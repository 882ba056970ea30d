/* batch_norm.c - see rules.h: folds a batch norm into the convolution before it, and recomputes the
 * mask of the relu behind it in its gradient. */
#include <string.h>

#include "ops/grad.h"
#include "rules.h"

/* ---- fold ----
 *
 * A batch norm with constant statistics and parameters becomes part of the convolution before it:
 *
 *   (conv(x, w) - mean) * k + beta = conv(x, w * k) + (beta - mean * k),
 *   k = gamma / sqrt(var + epsilon) for each output channel
 *
 * A bias b of the convolution is a part of the mean: mean - b takes its place.
 *
 * The filter's last axes are the output channels: [kh, kw, c, oc], depthwise [kh, kw, c, m] for
 * channel c * m + i. */

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
    adj_node *var = adj_stats_row(stats, 1);
    adj_node *k = adj_div(gamma, adj_sqrt(adj_add(var, adj_fill_like(var, a->epsilon))));
    adj_node *mean = adj_stats_row(stats, 0);
    if (biased != NULL)
        mean = adj_sub(mean, biased->in[1]);
    adj_node *bias = adj_sub(beta, adj_mul(mean, k));
    adj_node *const operand[] = {conv->in[0], scaled_filter(conv, k)};
    adj_node *y = adj_node_new(stats->graph, conv->op, 2, operand, conv->attrs);
    return adj_bias_add(y, bias, (adj_format)a->format);
}

/* ---- the mask ----
 *
 * For y = relu(z), z = batch_norm(x, ...), and d = relu_grad(dy, y), the sums and the gradient
 * of the batch norm read x and d. Each can compute d from dy and z > 0, and z from x, which it
 * reads anyway: then d is never written, and y is not read. So each gets its own copies of z and
 * d, for a kernel that computes all three nodes in one pass. */

/* Returns the index of the upstream gradient, which is also the clone number of its copies. */
static int gradient_operand(const adj_node *n) { return n->op == &adj_op_batch_norm_grad ? 3 : 2; }

/* True if n's gradient operand is relu_grad(dy, relu(z)) with z = batch_norm of n's own
 * operands. dy must not be elementwise, or it would be fused into the same pass and written. */
static int is_masked_by_own(const adj_node *n, adj_node *const in[])
{
    const adj_node *d = in[gradient_operand(n)];
    if (d->op != &adj_op_relu_grad || d->in[1]->op != &adj_op_relu ||
        (d->in[0]->op->flags & ADJ_OP_ELEMENTWISE))
        return 0;
    const adj_node *z = d->in[1]->in[0];
    return z->op == &adj_op_batch_norm && memcmp(z->attrs, n->attrs, adj_attr_size(n->op)) == 0 &&
           z->in[0] == in[0] && z->in[1] == in[1] &&
           (n->op != &adj_op_batch_norm_grad || z->in[2] == in[2]);
}

/* True if one batch norm's sums and its gradient are the only users of d. */
static int is_read_by_both(const adj_node *d, const adj_uses *uses)
{
    const adj_uses *u = &uses[d->id];
    if (u->is_root || u->n_user != 2)
        return 0;
    const adj_node *sums = u->user[0], *dx = u->user[1];
    return sums->op == &adj_op_batch_norm_grad_sums && dx->op == &adj_op_batch_norm_grad &&
           sums->in[2] == d && dx->in[3] == d && dx->in[4] == sums && dx->in[0] == sums->in[0];
}

adj_node *batch_norm_recompute_mask(const adj_node *n, adj_node *const in[], const adj_uses *uses)
{
    const int k = gradient_operand(n);
    if (!is_masked_by_own(n, in) || !is_read_by_both(n->in[k], uses))
        return NULL;
    const adj_node *d = in[k], *z = d->in[1]->in[0];
    adj_node *const mask[] = {d->in[0], adj_node_clone(z, z->in, k)};
    adj_node *operand[5];
    for (int i = 0; i < n->n_in; i++)
        operand[i] = in[i];
    operand[k] = adj_node_clone(d, mask, k);
    return adj_node_new(z->graph, n->op, n->n_in, operand, n->attrs);
}
