/* softmax.c - softmax and log_softmax over the last axis; softmax cross-entropy with dense or
 * integer labels, its gradient for the logits, and the number of labels that are not ignored.
 *
 *   y = softmax(x)      dx = (dy - sum(dy * y)) * y
 *   y = log_softmax(x)  dx = dy - exp(y) * sum(dy)
 * The sums are over the last axis.
 *
 * With p = softmax(z), smoothing s, k classes and t = (1-s)*labels + s/k (integer labels:
 * one-hot first), per row:
 *   loss = -sum(t * log p)        dz = dloss * (p - t)     dlabels = -(1-s) * dloss * log p
 *   g    = p - t   (the _grad)    dz = p * (dg - sum(dg * p))   dlabels = -(1-s) * dg
 * The loss has TensorFlow's dz, p - t, even where the labels do not sum to 1. A row with the
 * integer label -1 is ignored: its loss and gradients are 0.
 *
 * Gradient rules are compositions of ops, so derivatives of any order work. */
#include <inttypes.h>
#include <stdio.h>

#include "grad.h"
#include "graph/op.h"

static const adj_axes rows = {.n = 1, .axis = {-1}, .keep_dims = 1};

/* ---- softmax ---- */

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

/* ---- cross-entropy ---- */

/* Checks that operand i is a vector of i32. */
static adj_status check_labels(const adj_node *n, int i)
{
    adj_type labels = n->in[i]->type;
    if (labels.dtype != ADJ_I32)
        return adj_check_operand(n, i, (adj_type){ADJ_I32, labels.shape});
    if (labels.shape.rank != 1)
        return adj_fail(n->graph, ADJ_ESHAPE,
                        "%s: labels has the wrong rank (got %s, expected [n])", n->op->name,
                        adj_shape_text(labels.shape).s);
    return ADJ_OK;
}

adj_status adj_call_check_labels(const adj_call *c)
{
    const adj_node *n = c->group->node[0];
    if (n->n_in < 2 || n->in[1]->type.dtype != ADJ_I32)
        return ADJ_OK;
    const int64_t count = n->in[0]->type.shape.dim[0], classes = n->in[0]->type.shape.dim[1];
    const int32_t *label = c->in[adj_group_in(c->group, n->in[1])];
    int64_t i = 0;
    while (i < count && label[i] >= -1 && label[i] < classes)
        i++;
    if (i == count)
        return ADJ_OK;
    snprintf(c->message, ADJ_WHY,
             "%s: labels is out of range in row %" PRId64 " (got %" PRId32
             ", expected -1 to %" PRId64 ")",
             n->op->name, i, label[i], classes - 1);
    return ADJ_EARG;
}

static adj_status sparse_check(const adj_node *n)
{
    adj_shape z = n->in[0]->type.shape, labels = n->in[1]->type.shape;
    adj_status status = check_labels(n, 1);
    if (status == ADJ_OK && labels.dim[0] != z.dim[0])
        return adj_fail(n->graph, ADJ_ESHAPE,
                        "%s: labels does not have one entry for each row of logits (got %s for %s)",
                        n->op->name, adj_shape_text(labels).s, adj_shape_text(z).s);
    return status;
}

/* Dense labels have the logits' type; integer labels are one i32 per row. A loss is one number
 * per row. */
static adj_status infer(const adj_node *n, void *attrs, adj_type *out)
{
    (void)attrs;
    const adj_type z = n->in[0]->type;

    if (!adj_is_float(z.dtype))
        return adj_fail(n->graph, ADJ_EDTYPE, "%s: logits must be a float type (got %s)",
                        n->op->name, adj_dtype_name(z.dtype));
    if (z.shape.rank != 2)
        return adj_fail(n->graph, ADJ_ESHAPE,
                        "%s: logits has the wrong rank (got %s, expected [n, k])", n->op->name,
                        adj_shape_text(z.shape).s);
    if (z.shape.dim[1] < 1)
        return adj_fail(n->graph, ADJ_ESHAPE, "%s: logits has no classes (got %s)", n->op->name,
                        adj_shape_text(z.shape).s);
    *out = z;
    if (n->op == &adj_op_softmax_cross_entropy || n->op == &adj_op_sparse_softmax_cross_entropy)
        out->shape = (adj_shape){1, {z.shape.dim[0]}};
    return n->op->example[1] == ADJ_EXAMPLE_LABELS ? sparse_check(n) : adj_check_operand(n, 1, z);
}

static adj_status count_infer(const adj_node *n, void *attrs, adj_type *out)
{
    *out = (adj_type){(adj_dtype)((const adj_dtype_attrs *)attrs)->dtype, {0}};
    if (!adj_is_float(out->dtype))
        return adj_fail(n->graph, ADJ_EDTYPE, "label_count: dtype must be a float type (got %s)",
                        adj_dtype_name(out->dtype));
    return check_labels(n, 0);
}

/* [n] -> [n, 1] */
static adj_node *column(adj_node *v)
{
    return adj_reshape(v, (adj_shape){.rank = 2, .dim = {-1, 1}});
}

static double smoothing_of(const adj_node *n)
{
    const adj_value_attrs *a = n->attrs;
    return a->value;
}

static void loss_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    adj_node *z = y->in[0], *labels = y->in[1], *each = column(dy);
    double s = smoothing_of(y);

    dx[0] = adj_mul(each, adj_softmax_cross_entropy_grad(z, labels, s));
    dx[1] = adj_scale(adj_mul(each, adj_log_softmax(z)), s - 1);
}

/* Returns p * (dg - sum(dg * p)), the adjoint of softmax. */
static adj_node *through_softmax(adj_node *z, adj_node *dg)
{
    adj_node *p = adj_softmax(z);
    return adj_mul(p, adj_sub(dg, adj_reduce_sum(adj_mul(dg, p), rows)));
}

static void grad_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    dx[0] = through_softmax(y->in[0], dy);
    dx[1] = adj_scale(dy, smoothing_of(y) - 1);
}

static void sparse_loss_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    adj_node *d = adj_sparse_softmax_cross_entropy_grad(y->in[0], y->in[1], smoothing_of(y));
    dx[0] = adj_mul(column(dy), d);
    dx[1] = NULL;
}

static void sparse_grad_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    adj_node *z = y->in[0], *labels = adj_cast(y->in[1], z->type.dtype);
    adj_node *zero = adj_scalar_like(z, 0);

    adj_node *d = through_softmax(z, dy);
    dx[0] = adj_mul(column(adj_greater_equal(labels, zero)), d);
    dx[1] = NULL;
}

static adj_node *with_smoothing(const adj_op *op, adj_node *logits, adj_node *labels,
                                double smoothing)
{
    return adj_node_new2(op, logits, labels, &(adj_value_attrs){smoothing});
}

/* Logits and labels are broadcast, as in TensorFlow. */
static adj_node *dense(const adj_op *op, adj_node *logits, adj_node *labels, double smoothing)
{
    adj_shape both;

    if (logits == NULL || labels == NULL)
        return NULL;
    if (logits->type.shape.rank == 2 && labels->type.shape.rank == 2 &&
        adj_broadcast_shape(logits->type.shape, labels->type.shape, &both)) {
        if (!adj_shape_equal(logits->type.shape, both))
            logits = adj_broadcast_to(logits, both);
        if (!adj_shape_equal(labels->type.shape, both))
            labels = adj_broadcast_to(labels, both);
    }
    return with_smoothing(op, logits, labels, smoothing);
}

adj_node *adj_softmax_cross_entropy(adj_node *logits, adj_node *labels, double smoothing)
{
    return dense(&adj_op_softmax_cross_entropy, logits, labels, smoothing);
}

adj_node *adj_softmax_cross_entropy_grad(adj_node *logits, adj_node *labels, double smoothing)
{
    return dense(&adj_op_softmax_cross_entropy_grad, logits, labels, smoothing);
}

adj_node *adj_sparse_softmax_cross_entropy(adj_node *logits, adj_node *labels, double smoothing)
{
    return with_smoothing(&adj_op_sparse_softmax_cross_entropy, logits, labels, smoothing);
}

adj_node *adj_sparse_softmax_cross_entropy_grad(adj_node *logits, adj_node *labels,
                                                double smoothing)
{
    return with_smoothing(&adj_op_sparse_softmax_cross_entropy_grad, logits, labels, smoothing);
}

adj_node *adj_label_count(adj_node *labels, adj_dtype dtype)
{
    return adj_node_new1(&adj_op_label_count, labels, &(adj_dtype_attrs){dtype});
}

/* Draws one-hot rows: the gradient rule holds for labels that sum to 1. */
static void dense_domain(const adj_node *n, int i, int64_t count, double v[])
{
    int64_t k = n->in[0]->type.shape.dim[1];
    for (int64_t row = 0; i == 1 && k > 0 && row < count / k; row++) {
        int64_t one = (int64_t)((v[row * k] + 1) / 2 * (double)k);
        for (int64_t j = 0; j < k; j++)
            v[row * k + j] = j == one;
    }
}

/* Draws a class or -1. */
static void sparse_domain(const adj_node *n, int i, int64_t count, double v[])
{
    if (i == 1)
        adj_spread(count, v, -1, (double)n->in[0]->type.shape.dim[1]);
}

static const adj_schema smoothing_schema = {
    .size = sizeof(adj_value_attrs),
    .attr = {{"smoothing", ADJ_ATTR_REAL, .offset = offsetof(adj_value_attrs, value), " smoothing ",
              "0 to 1", 0, 1, .fallback = 0.1, .flags = ADJ_ATTR_HIDE_ZERO}}};
static const adj_schema count_schema = {
    .size = sizeof(adj_dtype_attrs),
    .attr = {{"dtype", ADJ_ATTR_DTYPE, .offset = offsetof(adj_dtype_attrs, dtype), " ",
              .flags = ADJ_ATTR_OF_RESULT}}};

const adj_op adj_op_softmax_cross_entropy = {.name = "softmax_cross_entropy",
                                             .example = {ADJ_EXAMPLE_MATRIX, ADJ_EXAMPLE_MATRIX},
                                             .n_in = 2,
                                             .schema = &smoothing_schema,
                                             .infer = infer,
                                             .grad = loss_grad,
                                             .domain = dense_domain,
                                             .operand = {"logits", "labels"}};
const adj_op adj_op_softmax_cross_entropy_grad = {
    .name = "softmax_cross_entropy_grad",
    .example = {ADJ_EXAMPLE_MATRIX, ADJ_EXAMPLE_MATRIX},
    .n_in = 2,
    .schema = &smoothing_schema,
    .infer = infer,
    .grad = grad_grad,
    .domain = dense_domain,
    .operand = {"logits", "labels"}};
const adj_op adj_op_sparse_softmax_cross_entropy = {
    .name = "sparse_softmax_cross_entropy",
    .example = {ADJ_EXAMPLE_MATRIX, ADJ_EXAMPLE_LABELS},
    .n_in = 2,
    .schema = &smoothing_schema,
    .flags = ADJ_OP_CAN_FAIL,
    .infer = infer,
    .grad = sparse_loss_grad,
    .domain = sparse_domain,
    .operand = {"logits", "labels"}};
const adj_op adj_op_sparse_softmax_cross_entropy_grad = {
    .name = "sparse_softmax_cross_entropy_grad",
    .example = {ADJ_EXAMPLE_MATRIX, ADJ_EXAMPLE_LABELS},
    .n_in = 2,
    .schema = &smoothing_schema,
    .flags = ADJ_OP_CAN_FAIL,
    .infer = infer,
    .grad = sparse_grad_grad,
    .domain = sparse_domain,
    .operand = {"logits", "labels"}};
const adj_op adj_op_label_count = {.name = "label_count",
                                   .operand = {"labels"},
                                   .example = {ADJ_EXAMPLE_LABELS},
                                   .n_in = 1,
                                   .schema = &count_schema,
                                   .flags = ADJ_OP_NO_GRADIENT | ADJ_OP_TYPED,
                                   .infer = count_infer};
