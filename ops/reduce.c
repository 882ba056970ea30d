/* reduce.c - sum, mean and maximum over axes; argmax; and whether all elements are finite.
 *
 *   sum    dx = dy repeated along the reduced axes
 *   mean   dx = dy / count repeated
 *   max    dx = dy / ties repeated, where x is the maximum, else 0: ties share it equally
 * Over no elements, the sum is 0, the mean NaN, and the maximum an error. */
#include "grad.h"
#include "graph/op.h"

static int is_reduced(const adj_reduce_attrs *a, int64_t axis) { return a->axes >> axis & 1; }

/* Returns the result's shape with the reduced axes kept, of size 1. */
static adj_shape kept_shape(const adj_reduce_attrs *a, adj_shape x)
{
    for (int64_t i = 0; i < x.rank; i++)
        if (is_reduced(a, i))
            x.dim[i] = 1;
    return x;
}

/* Returns how many elements of x one element of the result reduces. */
static int64_t count_of(const adj_reduce_attrs *a, adj_shape x)
{
    int64_t count = 1;
    for (int64_t i = 0; i < x.rank; i++)
        count *= is_reduced(a, i) ? x.dim[i] : 1;
    return count;
}

static adj_status reduce_infer(const adj_node *n, void *attrs, adj_type *out)
{
    const adj_reduce_attrs *a = attrs;
    adj_shape x = n->in[0]->type.shape;
    adj_status status = adj_check_same_dtype(n);

    if (status != ADJ_OK)
        return status;
    *out = (adj_type){.dtype = n->in[0]->type.dtype, .shape = kept_shape(a, x)};
    if (a->keep_dims)
        return ADJ_OK;
    out->shape = (adj_shape){0};
    for (int64_t i = 0; i < x.rank; i++)
        if (!is_reduced(a, i))
            out->shape.dim[out->shape.rank++] = x.dim[i];
    return ADJ_OK;
}

static adj_status reduce_max_infer(const adj_node *n, void *attrs, adj_type *out)
{
    adj_status status = reduce_infer(n, attrs, out);

    if (status == ADJ_OK && adj_shape_elems(out->shape) > 0 &&
        adj_shape_elems(n->in[0]->type.shape) == 0)
        return adj_fail(n->graph, ADJ_ESHAPE,
                        "reduce_max: an axis to reduce is empty (got input %s)",
                        adj_shape_text(n->in[0]->type.shape).s);
    return status;
}

/* Broadcasts v, of the result's shape, to x's shape. */
static adj_node *repeated(adj_node *y, adj_node *v)
{
    adj_shape x = y->in[0]->type.shape;
    return adj_broadcast_to(adj_reshape(v, kept_shape(y->attrs, x)), x);
}

static void reduce_sum_grad(adj_node *y, adj_node *dy, adj_node *dx[]) { dx[0] = repeated(y, dy); }

static void reduce_mean_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    int64_t count = count_of(y->attrs, y->in[0]->type.shape);
    dx[0] = repeated(y, adj_scale(dy, count > 0 ? 1 / (double)count : 0));
}

/* relu_grad selects: a product with the mask would turn an infinite gradient into NaN elsewhere. */
static void reduce_max_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    const adj_reduce_attrs *a = y->attrs;
    adj_axes axes = {.keep_dims = a->keep_dims != 0};

    for (int i = 0; i < y->in[0]->type.shape.rank; i++)
        if (is_reduced(a, i))
            axes.axis[axes.n++] = i;
    if (axes.n == 0) { /* no axis to reduce: y is x */
        dx[0] = adj_reshape(dy, y->in[0]->type.shape);
        return;
    }
    adj_node *is_max = adj_equal(y->in[0], repeated(y, y));
    adj_node *share = adj_div(dy, adj_reduce_sum(is_max, axes));
    dx[0] = adj_relu_grad(repeated(y, share), is_max);
}

/* Reduces before a transpose of the operand instead of behind it, if the kept axes have the same
 * order there: the result is the same, and no element moves. */
static adj_node *reduce_simplify(const adj_node *n, adj_node *const in[])
{
    const adj_reduce_attrs *a = n->attrs;
    adj_reduce_attrs before = {.keep_dims = a->keep_dims};
    int64_t last = -1;

    if (in[0]->op != &adj_op_transpose)
        return NULL;
    const int64_t *perm = ((const adj_transpose_attrs *)in[0]->attrs)->perm;
    for (int64_t i = 0; i < in[0]->type.shape.rank; i++) {
        if (is_reduced(a, i)) {
            before.axes |= (int64_t)1 << perm[i];
        } else if (in[0]->type.shape.dim[i] != 1) {
            if (perm[i] < last)
                return NULL;
            last = perm[i];
        }
    }
    adj_node *y = adj_node_new1(n->op, in[0]->in[0], &before);
    return y != NULL && adj_shape_equal(y->type.shape, n->type.shape)
               ? y
               : adj_reshape(y, n->type.shape);
}

static const adj_schema schema = {
    .size = sizeof(adj_reduce_attrs),
    .attr = {{"axes", ADJ_ATTR_AXES, .offset = offsetof(adj_reduce_attrs, axes), " axes="},
             {"keep_dims", ADJ_ATTR_FLAG, .offset = offsetof(adj_reduce_attrs, keep_dims)}}};

const adj_op adj_op_reduce_sum = {.name = "reduce_sum",
                                  .n_in = 1,
                                  .schema = &schema,
                                  .linear_in = ADJ_IN(0),
                                  .infer = reduce_infer,
                                  .grad = reduce_sum_grad,
                                  .simplify = reduce_simplify};

const adj_op adj_op_reduce_mean = {.name = "reduce_mean",
                                   .n_in = 1,
                                   .flags = ADJ_OP_HALF,
                                   .schema = &schema,
                                   .linear_in = ADJ_IN(0),
                                   .infer = reduce_infer,
                                   .grad = reduce_mean_grad,
                                   .simplify = reduce_simplify};

const adj_op adj_op_reduce_max = {.name = "reduce_max",
                                  .n_in = 1,
                                  .schema = &schema,
                                  .flags = ADJ_OP_KINKS | ADJ_OP_HALF,
                                  .infer = reduce_max_infer,
                                  .grad = reduce_max_grad,
                                  .simplify = reduce_simplify};

adj_status adj_axes_as_bits(const adj_node *x, const adj_op *op, const adj_axes *axes,
                            int64_t *bits)
{
    int64_t rank = x->type.shape.rank;

    if (axes->n != ADJ_ALL && (axes->n < 1 || axes->n > ADJ_MAX_RANK))
        return adj_fail(x->graph, ADJ_EARG,
                        "%s: axis has a wrong length (got %d, expected 1 to %d, or ADJ_ALL)",
                        op->name, axes->n, ADJ_MAX_RANK);
    *bits = axes->n == ADJ_ALL ? (1 << rank) - 1 : 0;
    for (int i = 0; i < axes->n; i++) {
        int64_t axis = axes->axis[i] < 0 ? axes->axis[i] + rank : axes->axis[i];
        if (axis < 0 || axis >= rank)
            return adj_fail(x->graph, ADJ_EARG,
                            "%s: axis is out of range (got %d, expected %ld to %ld for %s)",
                            op->name, axes->axis[i], (long)-rank, (long)rank - 1,
                            adj_shape_text(x->type.shape).s);
        if (*bits >> axis & 1)
            return adj_fail(x->graph, ADJ_EARG, "%s: axis %ld is given twice", op->name,
                            (long)axis);
        *bits |= (int64_t)1 << axis;
    }
    return ADJ_OK;
}

static adj_node *reduce(const adj_op *op, adj_node *x, const adj_axes *axes)
{
    adj_reduce_attrs a = {.keep_dims = axes->keep_dims != 0};

    if (x == NULL || adj_axes_as_bits(x, op, axes, &a.axes) != ADJ_OK)
        return NULL;
    return adj_node_new1(op, x, &a);
}

adj_node *adj_reduce_sum(adj_node *x, adj_axes axes)
{
    return reduce(&adj_op_reduce_sum, x, &axes);
}

adj_node *adj_reduce_mean(adj_node *x, adj_axes axes)
{
    return reduce(&adj_op_reduce_mean, x, &axes);
}

adj_node *adj_reduce_max(adj_node *x, adj_axes axes)
{
    return reduce(&adj_op_reduce_max, x, &axes);
}

adj_node *adj_reduce_min(adj_node *x, adj_axes axes)
{
    return adj_neg(adj_reduce_max(adj_neg(x), axes));
}

/* ---- argmax ----
 *
 * The index of the largest element along an axis, as i32: the first of equal elements, and the
 * first NaN if there is one. It has no derivative. */

static adj_status argmax_infer(const adj_node *n, void *attrs, adj_type *out)
{
    int64_t *axis = &((adj_axis_attrs *)attrs)->axis;
    const adj_shape x = n->in[0]->type.shape;

    if (!adj_is_float(n->in[0]->type.dtype))
        return adj_fail(n->graph, ADJ_EDTYPE, "argmax: input must be of a float type (got %s)",
                        adj_dtype_name(n->in[0]->type.dtype));
    if (*axis < -x.rank || *axis >= x.rank)
        return adj_fail(n->graph, ADJ_EARG,
                        "argmax: axis is out of range (got %ld, expected %ld to %ld)", (long)*axis,
                        (long)-x.rank, (long)x.rank - 1);
    if (*axis < 0)
        *axis += x.rank;
    if (x.dim[*axis] < 1 || x.dim[*axis] > INT32_MAX)
        return adj_fail(
            n->graph, ADJ_ESHAPE,
            "argmax: size of axis %ld is out of range (got input %s, expected 1 to INT32_MAX)",
            (long)*axis, adj_shape_text(x).s);
    *out = (adj_type){.dtype = ADJ_I32};
    for (int64_t i = 0; i < x.rank; i++)
        if (i != *axis)
            out->shape.dim[out->shape.rank++] = x.dim[i];
    return ADJ_OK;
}

static const adj_schema argmax_schema = {
    .size = sizeof(adj_axis_attrs),
    .attr = {{"axis", ADJ_ATTR_INT, .offset = offsetof(adj_axis_attrs, axis),
              " axis=", .fallback = -1}}};

const adj_op adj_op_argmax = {.name = "argmax",
                              .n_in = 1,
                              .schema = &argmax_schema,
                              .flags = ADJ_OP_KINKS | ADJ_OP_NO_GRADIENT,
                              .infer = argmax_infer};

adj_node *adj_argmax(adj_node *x, int axis)
{
    return adj_node_new1(&adj_op_argmax, x, &(adj_axis_attrs){.axis = axis});
}

/* ---- all_finite ----
 *
 * 1 if every element of every operand is finite, 0 if one is NaN or infinite. It has no gradient.
 */

static adj_status all_finite_infer(const adj_node *n, void *attrs, adj_type *out)
{
    (void)attrs;
    *out = (adj_type){.dtype = n->in[0]->type.dtype};
    return adj_check_same_dtype(n);
}

const adj_op adj_op_all_finite = {.name = "all_finite",
                                  .example = {ADJ_EXAMPLE_X, ADJ_EXAMPLE_FILTER_OR_X},
                                  .n_in = ADJ_MANY,
                                  .flags = ADJ_OP_NO_GRADIENT,
                                  .infer = all_finite_infer};

adj_node *adj_all_finite(int n, adj_node *const x[])
{
    if (n < 1 || x == NULL || x[0] == NULL)
        return NULL;
    return adj_node_new(x[0]->graph, &adj_op_all_finite, n, x, NULL);
}
