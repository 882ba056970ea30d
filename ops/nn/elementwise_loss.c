/* elementwise_loss.c - elementwise losses: squared error, absolute error, Huber's, and binary
 * cross-entropy with logits.
 *
 * With weights v, the mean is sum(v loss) / sum(v), which is the plain mean if all are 1. */
#include "nn.h"

/* Builds the loss of each element. */
typedef adj_node *element_loss(adj_node *prediction, adj_node *target, const adj_loss_opts *o);

static adj_status check(adj_node *prediction, adj_node *target)
{
    const adj_type p = adj_node_type(prediction), t = adj_node_type(target);
    int is_same = p.shape.rank == t.shape.rank;
    for (int64_t i = 0; i < p.shape.rank && is_same; i++)
        is_same = p.shape.dim[i] == t.shape.dim[i];
    adj_graph *g = adj_node_graph(prediction);
    if (!is_same)
        return adj_fail(g, ADJ_ESHAPE,
                        "loss: target does not have the prediction's shape (got rank %lld and %lld "
                        "elements, expected rank %lld and %lld)",
                        (long long)t.shape.rank, (long long)adj_shape_elems(t.shape),
                        (long long)p.shape.rank, (long long)adj_shape_elems(p.shape));
    if (p.dtype == ADJ_I32)
        return adj_fail(g, ADJ_EDTYPE, "loss: prediction must be of a float type (got i32)");
    return ADJ_OK;
}

/* Returns the weights, or ones, broadcast to the shape of each. */
static adj_node *weights_of(adj_node *each, const adj_loss_opts *o)
{
    const adj_type t = adj_node_type(each);
    if (o->weights == NULL)
        return adj_fill(adj_node_graph(each), t.dtype, t.shape, 1);
    return adj_broadcast_to(nn_cast(o->weights, t.dtype), t.shape);
}

static adj_node *loss(adj_node *prediction, adj_node *target, const adj_loss_opts *options,
                      element_loss *of)
{
    const adj_loss_opts none = {0}, *o = options != NULL ? options : &none;
    if (prediction == NULL || target == NULL || check(prediction, target) != ADJ_OK)
        return NULL;
    const adj_dtype dtype = nn_kept_dtype(adj_node_type(prediction).dtype);
    adj_node *each = of(nn_cast(prediction, dtype), nn_cast(target, dtype), o);
    if (each == NULL)
        return NULL;
    adj_node *weights = weights_of(each, o);
    if (o->weights != NULL)
        each = adj_mul(each, weights);
    return adj_label(nn_reduce_loss(each, weights, o->reduction), "loss");
}

static adj_node *squared(adj_node *prediction, adj_node *target, const adj_loss_opts *o)
{
    (void)o;
    return adj_square(adj_sub(prediction, target));
}

static adj_node *absolute(adj_node *prediction, adj_node *target, const adj_loss_opts *o)
{
    (void)o;
    return adj_abs(adj_sub(prediction, target));
}

/* c (e - c / 2), c being the error e clipped to [-delta, delta]. */
static adj_node *huber(adj_node *prediction, adj_node *target, const adj_loss_opts *o)
{
    const double delta = nn_or_default(o->delta, 1);
    if (!(delta > 0)) {
        adj_fail(adj_node_graph(prediction), ADJ_EARG,
                 "loss: delta is out of range (got %g, expected above 0)", delta);
        return NULL;
    }
    adj_node *e = adj_sub(prediction, target);
    adj_node *c = adj_clip(e, -delta, delta);
    adj_node *rest = adj_sub(e, adj_scale(c, 0.5));
    return adj_mul(c, rest);
}

/* -t log(s) - (1 - t) log(1 - s) with s = sigmoid(z) is (1 - t) z + softplus(-z). */
static adj_node *binary(adj_node *z, adj_node *t, const adj_loss_opts *o)
{
    (void)o;
    adj_node *linear = adj_mul(
        adj_sub(adj_fill(adj_node_graph(t), adj_node_type(t).dtype, (adj_shape){0}, 1), t), z);
    adj_node *curved = adj_softplus(adj_neg(z));
    return adj_add(linear, curved);
}

adj_node *adj_loss_mse(adj_node *prediction, adj_node *target, const adj_loss_opts *options)
{
    return loss(prediction, target, options, squared);
}

adj_node *adj_loss_l1(adj_node *prediction, adj_node *target, const adj_loss_opts *options)
{
    return loss(prediction, target, options, absolute);
}

adj_node *adj_loss_huber(adj_node *prediction, adj_node *target, const adj_loss_opts *options)
{
    return loss(prediction, target, options, huber);
}

adj_node *adj_loss_binary(adj_node *logits, adj_node *target, const adj_loss_opts *options)
{
    return loss(logits, target, options, binary);
}
