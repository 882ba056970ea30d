/* build_loss.c - see build.h: softmax and the losses. */
#include "build.h"

static adj_node *softmax(op_case *c) { return adj_softmax(operand_x(c)); }
static adj_node *log_softmax(op_case *c) { return adj_log_softmax(operand_x(c)); }
static double smoothing(op_case *c) { return attr_real(c, 0, 0.1); }
static adj_node *cross_entropy(op_case *c)
{
    adj_node *z = operand_matrix(c), *t = operand_matrix(c);
    return adj_softmax_cross_entropy(z, t, smoothing(c));
}
static adj_node *cross_entropy_grad(op_case *c)
{
    adj_node *z = operand_matrix(c), *t = operand_matrix(c);
    return adj_softmax_cross_entropy_grad(z, t, smoothing(c));
}
static adj_node *sparse_cross_entropy(op_case *c)
{
    adj_node *z = operand_matrix(c);
    return adj_sparse_softmax_cross_entropy(z, operand_labels(c), smoothing(c));
}
static adj_node *sparse_cross_entropy_grad(op_case *c)
{
    adj_node *z = operand_matrix(c);
    return adj_sparse_softmax_cross_entropy_grad(z, operand_labels(c), smoothing(c));
}
static adj_node *label_count(op_case *c) { return adj_label_count(operand_labels(c), c->dtype); }

const op_builder loss_builders[] = {
    {"softmax", softmax},
    {"log_softmax", log_softmax},
    {"softmax_cross_entropy", cross_entropy},
    {"softmax_cross_entropy_grad", cross_entropy_grad},
    {"sparse_softmax_cross_entropy", sparse_cross_entropy},
    {"sparse_softmax_cross_entropy_grad", sparse_cross_entropy_grad},
    {"label_count", label_count},
    {NULL, NULL},
};
