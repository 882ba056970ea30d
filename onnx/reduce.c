/* reduce.c - reductions, ArgMax, and the losses of classifiers. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "import.h"

/* Reads axes, an attribute or operand 1, and keepdims. *is_none is 1 if nothing is to be reduced.
 * Returns 0 having refused the node. */
static int read_axes(call *n, adj_axes *axes, int *is_none)
{
    const int64_t *list;
    const int count = int_list(n, "axes", 1, &list), rank = (int)in_shape(n, 0).rank;
    *is_none = count <= 0 && attr_int(n, "noop_with_empty_axes", 0) != 0;
    *axes = (adj_axes){.keep_dims = attr_int(n, "keepdims", 1) != 0};
    if (count == -2)
        return 0;
    for (int i = 0; i < (count > 0 ? count : rank); i++) {
        const int axis = count > 0 ? axis_of(n, list[i], rank) : i;
        if (axis < 0 || axes->n == ADJ_MAX_RANK)
            return axis < 0 ? 0 : refuse(n, "too many axes");
        axes->axis[axes->n++] = axis;
    }
    return 1;
}

/* after(reduce(unary(x))); what has no elements reduces to of_none, as a truth value to 0 or 1. */
int import_reduce(call *n)
{
    const operator_row *row = n->row;
    adj_axes axes;
    int is_none;
    adj_node *x = in_node(n, 0);
    if (x == NULL || !read_axes(n, &axes, &is_none))
        return 0;
    if (row->unary != NULL)
        x = row->unary(x);
    if (!is_none && axes.n > 0 && adj_shape_elems(shape_of(x)) == 0 && row->of_none != 0) {
        const int is_truth = n->in[0]->elem == ELEM_BOOL;
        x = adj_reduce_sum(x, axes);
        x = adj_add(x, adj_scalar_like(x, is_truth ? row->of_none > 0 : row->of_none));
    } else if (!is_none && axes.n > 0) {
        x = row->reduce(x, axes);
    }
    return give_at(n, 0, row->after != NULL ? row->after(x) : x, n->in[0]->elem);
}

/* max + log(sum exp(x - max)), without overflow; the gradient does not pass through the maximum. */
adj_node *log_sum_exp(adj_node *x, adj_axes axes)
{
    adj_axes kept = axes;
    kept.keep_dims = 1;
    adj_node *max = adj_stop_gradient(adj_reduce_max(x, kept));
    adj_node *sum = adj_log(adj_reduce_sum(adj_exp(adj_sub(x, max)), axes));
    return sum != NULL ? adj_add(sum, adj_reshape(max, shape_of(sum))) : NULL;
}

/* ---- ArgMax, ArgMin ---- */

/* The place of the maximum of unary(x). */
int import_arg_max(call *n)
{
    const adj_shape s = in_shape(n, 0);
    const int axis = axis_of(n, attr_int(n, "axis", 0), s.rank);
    adj_node *x = in_node(n, 0);
    if (axis < 0 || x == NULL)
        return 0;
    if (n->row->unary != NULL)
        x = n->row->unary(x);
    const int is_last = attr_int(n, "select_last_index", 0) != 0;
    const int64_t size = s.dim[axis];
    if (is_last) {
        int64_t index[4096];
        if (size > 4096)
            return refuse(n, "select_last_index of %" PRId64 " elements", size);
        for (int64_t i = 0; i < size; i++)
            index[i] = size - 1 - i;
        x = pick(x, axis, size, index);
    }
    adj_node *y = adj_argmax(x, axis);
    if (is_last) {
        adj_node *f = adj_cast(y, ADJ_F64);
        y = adj_cast(adj_sub(adj_scalar_like(f, (double)(size - 1)), f), ADJ_I32);
    }
    adj_shape kept = s;
    kept.dim[axis] = 1;
    if (attr_int(n, "keepdims", 1) != 0)
        y = adj_reshape(y, kept);
    return give_at(n, 0, y, ELEM_INT64);
}

/* ---- NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss ----
 *
 * The log-probabilities [n, c, d1, ...] become rows [rows, c]; a mask of the labels picks an
 * element from each row. Labels in a run are integers, of which floats hold those up to 2^24. */

/* x [n, c, d1, ...] as rows [n d1 ..., c]. */
static adj_node *as_rows(adj_node *x)
{
    const adj_shape s = shape_of(x);
    int perm[ADJ_MAX_RANK] = {0};
    for (int i = 1; i + 1 < s.rank; i++)
        perm[i] = i + 1;
    perm[s.rank - 1] = 1;
    const int64_t c = s.dim[1], rows = c > 0 ? adj_shape_elems(s) / c : 0;
    return adj_reshape(permute(x, perm), (adj_shape){2, {rows, c}});
}

/* [rows, c]: 1 at the label of each row, and 0 elsewhere and in rows that are ignored. */
static adj_node *label_mask(call *n, adj_node *labels, int64_t rows, int64_t c, adj_dtype dtype)
{
    numbers *numbered = new_numbers(n->f, ELEM_INT64, (adj_shape){2, {1, c}});
    if (numbered == NULL || labels == NULL)
        return NULL;
    for (int64_t i = 0; i < c; i++)
        numbered->i[i] = i;
    adj_node *column = adj_reshape(adj_cast(labels, dtype), (adj_shape){2, {rows, 1}});
    adj_node *mask = adj_equal(column, const_node(n->f, numbered, dtype));
    const Onnx__AttributeProto *ignored = attribute(n, "ignore_index");
    if (ignored == NULL)
        return mask;
    adj_node *is_ignored = adj_equal(column, adj_scalar_like(column, (double)ignored->i));
    return adj_mul(mask, adj_sub(adj_scalar_like(column, 1), is_ignored));
}

static int loss_of(call *n, adj_node *log_p)
{
    const adj_shape s = in_shape(n, 0), by_label = in_shape(n, 1);
    adj_node *rows = log_p != NULL ? as_rows(log_p) : NULL;
    if (rows == NULL)
        return 0;
    const adj_dtype dtype = adj_node_type(rows).dtype;
    const int64_t c = s.dim[1], n_row = shape_of(rows).dim[0];
    adj_node *mask = label_mask(n, in_node(n, 1), n_row, c, dtype);
    if (has_in(n, 2))
        mask = adj_mul(mask, adj_reshape(in_node(n, 2), (adj_shape){2, {1, c}}));
    adj_node *weights = adj_stop_gradient(mask);
    const adj_axes last = {.n = 1, .axis = {1}}, all = {.n = ADJ_ALL};
    adj_node *each = adj_neg(adj_reduce_sum(adj_mul(rows, weights), last));
    const word how = attr_word(n, "reduction", "mean");
    if (strcmp(how.s, "none") == 0) {
        n->out[0].is_merged = n->in[1]->is_merged;
        return give(n, adj_reshape(each, by_label));
    }
    adj_node *sum = adj_reduce_sum(each, all);
    if (strcmp(how.s, "sum") == 0)
        return give(n, sum);
    return give(n, adj_div(sum, adj_reduce_sum(weights, all)));
}

int import_nll_loss(call *n)
{
    return in_shape(n, 0).rank < 2 ? refuse(n, "rank of its operand") : loss_of(n, in_node(n, 0));
}

int import_softmax_cross_entropy(call *n)
{
    const adj_shape s = in_shape(n, 0);
    adj_node *x = in_node(n, 0);
    if (x == NULL || s.rank < 2)
        return refuse(n, "rank of its operand");
    adj_node *log_p = along(x, 1, adj_log_softmax);
    if (n->n_out > 1) {
        n->out[1].is_merged = n->in[0]->is_merged;
        give_at(n, 1, log_p, n->in[0]->elem);
    }
    return loss_of(n, log_p);
}
