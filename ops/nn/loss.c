/* loss.c - losses: the softmax cross-entropy, the mean over the labeled rows, weighted if classes
 * have weights; and elementwise ones: squared error, absolute error, Huber's, and binary
 * cross-entropy with logits.
 *
 * With p = softmax(z), smoothing s, k classes, weights v, and sums over the rows with a label y:
 *   sum((1-s) v[y] * -log p[y] + s/k * sum_c(v[c] * -log p[c])) / sum(v[y])
 * This is PyTorch's formula. A row without a label (-1) is ignored. The mean of elementwise losses
 * with weights v is sum(v loss) / sum(v), which is the plain mean if all are 1. */
#include <stdlib.h>

#include "nn.h"
#include "ops/grad.h"

static const adj_axes all = {.n = ADJ_ALL}, last = {.n = 1, .axis = {-1}};

/* 0, 1, ..., k-1 */
static adj_node *class_numbers(adj_graph *g, adj_dtype dtype, int64_t k)
{
    double *numbers = malloc((size_t)k * sizeof *numbers);

    if (numbers == NULL) {
        adj_fail(g, ADJ_ENOMEM, "loss: out of memory");
        return NULL;
    }
    for (int64_t i = 0; i < k; i++)
        numbers[i] = (double)i;
    adj_node *n = adj_const(g, ADJ_F64, (adj_shape){1, {k}}, numbers);
    free(numbers);
    return adj_in_dtype(n, dtype);
}

/* [n]: the weight of each row's class; 0 for the label -1. */
static adj_node *row_weights(adj_node *labels, adj_node *weights)
{
    adj_type v = adj_node_type(weights);
    adj_node *numbers = class_numbers(adj_node_graph(weights), v.dtype, v.shape.dim[0]);
    adj_node *column = adj_reshape(adj_cast(labels, v.dtype), (adj_shape){2, {-1, 1}});
    return adj_reduce_sum(adj_mul(adj_equal(column, numbers), weights), last);
}

/* Reduces losses: their sum, for ADJ_LOSS_MEAN divided by the sum of the weights, or each
 * unchanged.
 */
static adj_node *reduce_loss(adj_node *losses, adj_node *weights, adj_loss_reduction reduction)
{
    if (losses == NULL || reduction == ADJ_LOSS_EACH)
        return losses;
    adj_node *sum = adj_reduce_sum(losses, all);
    if (sum == NULL || reduction == ADJ_LOSS_SUM)
        return sum;
    /* no labeled row: 0 instead of 0 / 0 */
    adj_node *min = adj_scalar_like(sum, 1e-30);
    return adj_div(sum, adj_maximum(adj_reduce_sum(weights, all), min));
}

static adj_node *weighted_loss(adj_node *z, adj_node *labels, const adj_loss_opts *o)
{
    adj_type t = adj_node_type(z);
    adj_node *weight = row_weights(labels, o->weights);
    adj_node *rows = adj_mul(weight, adj_sparse_softmax_cross_entropy(z, labels, 0));

    if (o->smoothing > 0) {
        adj_node *spread = adj_reduce_sum(adj_mul(adj_log_softmax(z), o->weights), last);
        adj_node *zero = adj_fill(adj_node_graph(labels), t.dtype, (adj_shape){0}, 0);
        adj_node *has_label = adj_greater_equal(adj_cast(labels, t.dtype), zero); /* not -1 */
        spread = adj_mul(spread, has_label);
        rows = adj_sub(adj_scale(rows, 1 - o->smoothing),
                       adj_scale(spread, o->smoothing / (double)t.shape.dim[1]));
    }
    return reduce_loss(rows, weight, o->reduction);
}

static adj_node *plain_loss(adj_node *z, adj_node *labels, const adj_loss_opts *o)
{
    adj_node *rows = adj_sparse_softmax_cross_entropy(z, labels, o->smoothing);
    if (o->reduction != ADJ_LOSS_MEAN)
        return reduce_loss(rows, NULL, o->reduction);
    adj_node *count = adj_label_count(labels, adj_node_type(z).dtype);
    return adj_div(adj_reduce_sum(rows, all), count);
}

/* Returns the labels as one row, with -1 in place of ignored_label. All labels are exact in f64. */
static adj_node *flat_labels(adj_node *labels, int ignored_label)
{
    const int is_flat = adj_node_type(labels).shape.rank == 1;
    adj_node *flat = is_flat ? labels : adj_reshape(labels, (adj_shape){1, {-1}});
    if (ignored_label <= 0 || flat == NULL)
        return flat;
    adj_node *wide = adj_cast(flat, ADJ_F64);
    adj_node *is_ignored = adj_equal(wide, adj_scalar_like(wide, ignored_label));
    adj_node *one = adj_scalar_like(wide, 1);
    adj_node *change = adj_mul(adj_add(wide, one), is_ignored);
    return adj_cast(adj_sub(wide, change), ADJ_I32);
}

/* Returns the loss of each row of z, [rows, k]. */
static adj_node *loss_of(adj_node *z, adj_node *labels, const adj_loss_opts *o)
{
    adj_node *flat = flat_labels(labels, o->ignored_label);
    return o->weights != NULL ? weighted_loss(z, flat, o) : plain_loss(z, flat, o);
}

static adj_status check_reduction(adj_graph *g, adj_loss_reduction reduction)
{
    if ((unsigned)reduction <= ADJ_LOSS_EACH)
        return ADJ_OK;
    return adj_fail(g, ADJ_EARG, "loss: reduction is wrong (got %d, expected 0 to %d)",
                    (int)reduction, (int)ADJ_LOSS_EACH);
}

/* Checks shapes that the ops would broadcast, and options that no op checks. */
static adj_status check(adj_node *logits, adj_node *labels, const adj_loss_opts *o)
{
    adj_graph *g = adj_node_graph(logits);
    const adj_type t = adj_node_type(labels);
    adj_shape rows = adj_node_type(logits).shape;
    if (rows.rank < 2)
        return adj_fail(g, ADJ_ESHAPE,
                        "loss: logits have the wrong rank (got %lld, expected 2 or "
                        "more)",
                        (long long)rows.rank);
    const int64_t k = rows.dim[--rows.rank];
    if (t.dtype != ADJ_I32)
        return adj_fail(g, ADJ_EDTYPE, "loss: labels have the wrong type (got %s, expected i32)",
                        adj_dtype_name(t.dtype));
    if (!adj_shape_equal(t.shape, rows))
        return adj_fail(g, ADJ_ESHAPE,
                        "loss: labels must have the logits' shape without the last axis (got rank "
                        "%lld, expected %lld)",
                        (long long)t.shape.rank, (long long)rows.rank);
    if (!(o->smoothing >= 0 && o->smoothing <= 1))
        return adj_fail(g, ADJ_EARG, "loss: smoothing is out of range (got %g, expected 0 to 1)",
                        o->smoothing);
    if ((o->mix == NULL) != (o->other_labels == NULL))
        return adj_fail(g, ADJ_EARG, "loss: %s is missing (mix and other_labels go together)",
                        o->mix == NULL ? "mix" : "other_labels");
    if (o->mix != NULL && adj_node_type(o->mix).shape.rank != 0)
        return adj_fail(g, ADJ_ESHAPE, "loss: mix has the wrong rank (got %lld, expected 0)",
                        (long long)adj_node_type(o->mix).shape.rank);
    if (o->mix != NULL && o->reduction != ADJ_LOSS_MEAN)
        return adj_fail(g, ADJ_EARG,
                        "loss: mix requires the mean as reduction (got %d, expected %d)",
                        (int)o->reduction, (int)ADJ_LOSS_MEAN);
    if (check_reduction(g, o->reduction) != ADJ_OK)
        return ADJ_EARG;
    if (o->weights == NULL)
        return ADJ_OK;
    adj_shape v = adj_node_type(o->weights).shape;
    if (v.rank != 1 || v.dim[0] != k)
        return adj_fail(g, ADJ_ESHAPE, "loss: weights must have one value per class, %lld",
                        (long long)k);
    return ADJ_OK;
}

adj_node *adj_loss_softmax(adj_node *logits, adj_node *labels, const adj_loss_opts *options)
{
    adj_loss_opts o = options != NULL ? *options : (adj_loss_opts){0};

    if (logits == NULL || labels == NULL || check(logits, labels, &o) != ADJ_OK)
        return NULL;
    /* f32: a mean over a batch needs more than a half type's 8 or 11 bits. */
    adj_dtype dtype = nn_kept_dtype(adj_node_type(logits).dtype);
    const adj_shape s = adj_node_type(logits).shape;
    adj_node *rows =
        s.rank == 2 ? logits : adj_reshape(logits, (adj_shape){2, {-1, s.dim[s.rank - 1]}});
    adj_node *z = adj_in_dtype(rows, dtype), *mix = adj_in_dtype(o.mix, dtype);
    o.weights = adj_in_dtype(o.weights, dtype);
    adj_node *loss = loss_of(z, labels, &o);
    if (mix != NULL) {
        adj_node *one = adj_scalar_like(z, 1);
        loss =
            adj_add(adj_mul(mix, loss), adj_mul(adj_sub(one, mix), loss_of(z, o.other_labels, &o)));
    }
    if (o.reduction == ADJ_LOSS_EACH)
        loss = adj_reshape(loss, adj_node_type(labels).shape);
    return adj_label(loss, "loss");
}

/* ---- elementwise losses ---- */

/* Builds the loss of each element. */
typedef adj_node *element_loss(adj_node *prediction, adj_node *target, const adj_loss_opts *o);

static adj_status check_elements(adj_node *prediction, adj_node *target)
{
    const adj_type p = adj_node_type(prediction), t = adj_node_type(target);
    adj_graph *g = adj_node_graph(prediction);
    if (!adj_shape_equal(p.shape, t.shape))
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
    return adj_broadcast_to(adj_in_dtype(o->weights, t.dtype), t.shape);
}

static adj_node *element_wise(adj_node *prediction, adj_node *target, const adj_loss_opts *options,
                              element_loss *of)
{
    const adj_loss_opts none = {0}, *o = options != NULL ? options : &none;
    if (prediction == NULL || target == NULL || check_elements(prediction, target) != ADJ_OK ||
        check_reduction(adj_node_graph(prediction), o->reduction) != ADJ_OK)
        return NULL;
    const adj_dtype dtype = nn_kept_dtype(adj_node_type(prediction).dtype);
    adj_node *each = of(adj_in_dtype(prediction, dtype), adj_in_dtype(target, dtype), o);
    if (each == NULL)
        return NULL;
    adj_node *weights = weights_of(each, o);
    if (o->weights != NULL)
        each = adj_mul(each, weights);
    return adj_label(reduce_loss(each, weights, o->reduction), "loss");
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
    adj_node *linear = adj_mul(adj_sub(adj_scalar_like(t, 1), t), z);
    adj_node *curved = adj_softplus(adj_neg(z));
    return adj_add(linear, curved);
}

adj_node *adj_loss_mse(adj_node *prediction, adj_node *target, const adj_loss_opts *options)
{
    return element_wise(prediction, target, options, squared);
}

adj_node *adj_loss_l1(adj_node *prediction, adj_node *target, const adj_loss_opts *options)
{
    return element_wise(prediction, target, options, absolute);
}

adj_node *adj_loss_huber(adj_node *prediction, adj_node *target, const adj_loss_opts *options)
{
    return element_wise(prediction, target, options, huber);
}

adj_node *adj_loss_binary(adj_node *logits, adj_node *target, const adj_loss_opts *options)
{
    return element_wise(logits, target, options, binary);
}
