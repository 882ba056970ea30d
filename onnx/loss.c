/* loss.c - NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
 *
 * The log-probabilities [n, c, d1, ...] become rows [rows, c]; a mask of the labels picks an
 * element from each row. Labels in a run are integers, of which floats hold those up to 2^24. */
#include <inttypes.h>
#include <string.h>

#include "table.h"

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
    adj_node *is_ignored = adj_equal(column, scalar(column, (double)ignored->i));
    return adj_mul(mask, adj_sub(scalar(column, 1), is_ignored));
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
    int perm[ADJ_MAX_RANK];
    swap_with_last((int)s.rank, 1, perm);
    adj_node *log_p = permute(adj_log_softmax(permute(x, perm)), perm);
    if (n->n_out > 1) {
        n->out[1].is_merged = n->in[0]->is_merged;
        give_at(n, 1, log_p, n->in[0]->elem);
    }
    return loss_of(n, log_p);
}
