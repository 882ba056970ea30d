/* loss.c - what training minimizes: the mean over the rows that have a label, or the weighted mean
 * where classes have weights.
 *
 * With p = softmax(z), smoothing s, k classes, weights v, and sums over the rows with a label y:
 *   sum((1-s) v[y] * -log p[y] + s/k * sum_c(v[c] * -log p[c])) / sum(v[y])
 * which is PyTorch's, as is that a row without a label (-1) is not there. */
#include <stdlib.h>

#include "nn.h"

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
    return nn_cast(n, dtype);
}

/* [n]: the weight of each row's class; 0 for the label -1. */
static adj_node *row_weights(adj_node *labels, adj_node *weights)
{
    adj_type v = adj_node_type(weights);
    adj_node *numbers = class_numbers(adj_node_graph(weights), v.dtype, v.shape.dim[0]);
    adj_node *column = adj_reshape(adj_cast(labels, v.dtype), (adj_shape){2, {-1, 1}});
    return adj_reduce_sum(adj_mul(adj_equal(column, numbers), weights), last);
}

/* [n]: 1, or 0 for the label -1. */
static adj_node *has_label(adj_node *labels, adj_dtype dtype)
{
    adj_node *zero = adj_fill(adj_node_graph(labels), dtype, (adj_shape){0}, 0);
    return adj_greater_equal(adj_cast(labels, dtype), zero);
}

static adj_node *weighted_loss(adj_node *z, adj_node *labels, adj_node *weights, double smoothing)
{
    adj_type t = adj_node_type(z);
    adj_node *each = row_weights(labels, weights);
    adj_node *rows = adj_mul(each, adj_sparse_softmax_cross_entropy(z, labels, 0));

    if (smoothing > 0) {
        adj_node *spread = adj_reduce_sum(adj_mul(adj_log_softmax(z), weights), last);
        spread = adj_mul(spread, has_label(labels, t.dtype));
        rows = adj_sub(adj_scale(rows, 1 - smoothing),
                       adj_scale(spread, smoothing / (double)t.shape.dim[1]));
    }
    /* nothing counts: 0, not 0 / 0 */
    adj_node *min = adj_fill(adj_node_graph(z), t.dtype, (adj_shape){0}, 1e-30);
    return adj_div(adj_reduce_sum(rows, all), adj_maximum(adj_reduce_sum(each, all), min));
}

static adj_node *mean_loss(adj_node *z, adj_node *labels, double smoothing)
{
    adj_node *rows = adj_sparse_softmax_cross_entropy(z, labels, smoothing);
    adj_node *count = adj_label_count(labels, adj_node_type(z).dtype);
    return adj_div(adj_reduce_sum(rows, all), count);
}

static adj_node *loss_of(adj_node *z, adj_node *labels, const adj_loss_opts *o)
{
    return o->weights != NULL ? weighted_loss(z, labels, o->weights, o->smoothing)
                              : mean_loss(z, labels, o->smoothing);
}

/* Shapes that the ops would broadcast, and what they do not see. */
static adj_status check(adj_type z, adj_graph *g, const adj_loss_opts *o)
{
    if (!(o->smoothing >= 0 && o->smoothing <= 1))
        return adj_fail(g, ADJ_EARG, "loss: smoothing is out of range (got %g, expected 0 to 1)",
                        o->smoothing);
    if ((o->mix == NULL) != (o->other_labels == NULL))
        return adj_fail(g, ADJ_EARG, "loss: %s is missing (mix and other_labels go together)",
                        o->mix == NULL ? "mix" : "other_labels");
    if (o->mix != NULL && adj_node_type(o->mix).shape.rank != 0)
        return adj_fail(g, ADJ_ESHAPE, "loss: mix has the wrong rank (got %lld, expected 0)",
                        (long long)adj_node_type(o->mix).shape.rank);
    if (o->weights == NULL || z.shape.rank != 2) /* which the ops refuse */
        return ADJ_OK;
    adj_shape v = adj_node_type(o->weights).shape;
    if (v.rank != 1 || v.dim[0] != z.shape.dim[1])
        return adj_fail(g, ADJ_ESHAPE, "loss: weights are not one for each of %lld classes",
                        (long long)z.shape.dim[1]);
    return ADJ_OK;
}

adj_node *adj_loss_softmax_with(adj_node *logits, adj_node *labels, const adj_loss_opts *options)
{
    adj_loss_opts o = options != NULL ? *options : (adj_loss_opts){0};

    if (logits == NULL || labels == NULL ||
        check(adj_node_type(logits), adj_node_graph(logits), &o) != ADJ_OK)
        return NULL;
    /* A mean over a batch does not fit a half type's eight or eleven bits. */
    adj_dtype dtype = nn_kept_dtype(adj_node_type(logits).dtype);
    adj_node *z = nn_cast(logits, dtype), *mix = nn_cast(o.mix, dtype);
    o.weights = nn_cast(o.weights, dtype);
    adj_node *loss = loss_of(z, labels, &o);
    if (mix != NULL) {
        adj_node *one = adj_fill(adj_node_graph(z), dtype, (adj_shape){0}, 1);
        loss =
            adj_add(adj_mul(mix, loss), adj_mul(adj_sub(one, mix), loss_of(z, o.other_labels, &o)));
    }
    return adj_label(loss, "loss");
}

adj_node *adj_loss_softmax_smoothed(adj_node *logits, adj_node *labels, double smoothing)
{
    return adj_loss_softmax_with(logits, labels, &(adj_loss_opts){.smoothing = smoothing});
}

adj_node *adj_loss_softmax(adj_node *logits, adj_node *labels)
{
    return adj_loss_softmax_with(logits, labels, NULL);
}
