/* softmax.c - softmax and log_softmax over the last axis.
 *
 *   y = softmax(x)      dx = (dy - sum(dy * y)) * y
 *   y = log_softmax(x)  dx = dy - exp(y) * sum(dy)
 * The sums are over the last axis. Both gradient rules are compositions of ops, so derivatives
 * of any order work. */
#include "graph/op.h"

static const adj_axes rows = {.n = 1, .axis = {-1}, .keep_dims = 1};

static adj_status softmax_infer(const adj_node *n, void *attrs, adj_type *out)
{
    (void)attrs;
    adj_status status = adj_check_same(n, 1, out);

    if (status == ADJ_OK && out->shape.rank < 1)
        return adj_fail(n->graph, ADJ_ESHAPE,
                        "%s: logits has no last axis (got rank 0, expected 1 to %d)", n->op->name,
                        ADJ_MAX_RANK);
    return status;
}

static void softmax_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    adj_node *mean = adj_reduce_sum(adj_mul(dy, y), rows);
    dx[0] = adj_mul(adj_sub(dy, mean), y);
}

static void log_softmax_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    adj_node *sum = adj_reduce_sum(dy, rows);
    dx[0] = adj_sub(dy, adj_mul(adj_exp(y), sum));
}

adj_node *adj_softmax(adj_node *x) { return adj_node_new1(&adj_op_softmax, x, NULL); }

adj_node *adj_log_softmax(adj_node *x) { return adj_node_new1(&adj_op_log_softmax, x, NULL); }

const adj_op adj_op_softmax = {
    .name = "softmax", .n_in = 1, .infer = softmax_infer, .grad = softmax_grad};
const adj_op adj_op_log_softmax = {
    .name = "log_softmax", .n_in = 1, .infer = softmax_infer, .grad = log_softmax_grad};
