/* copy.c - pad surrounds a tensor with zeros, slice extracts a box from one, concat joins tensors
 * along an axis. Any dtype.
 *
 * Pad and slice are each other's adjoint; of concat, each operand gets its slice of dy:
 *   y = pad(x, before, after)     dx = slice(dy, before, shape of x)
 *   y = slice(x, begin, size)     dx = pad(dy, begin, shape of x - begin - size) */
#include <string.h>

#include "graph/op.h"

/* Checks that the list has one entry per axis, none negative. */
static adj_status check_list(const adj_node *n, const char *name, adj_shape *list)
{
    int64_t rank = n->in[0]->type.shape.rank;

    if (list->rank != rank)
        return adj_fail(n->graph, ADJ_ESHAPE,
                        "%s: %s has a wrong length (got %ld, expected %ld for %s)", n->op->name,
                        name, (long)list->rank, (long)rank, adj_shape_text(n->in[0]->type.shape).s);
    for (int64_t i = 0; i < rank; i++)
        if (list->dim[i] < 0)
            return adj_fail(n->graph, ADJ_EARG, "%s: %s is negative at axis %ld (got %ld)",
                            n->op->name, name, (long)i, (long)list->dim[i]);
    *list = adj_trimmed(*list);
    return ADJ_OK;
}

static adj_status pad_infer(const adj_node *n, void *attrs, adj_type *out)
{
    adj_range_attrs *r = attrs;
    adj_status status = check_list(n, "paddings before", &r->a);

    if (status == ADJ_OK)
        status = check_list(n, "paddings after", &r->b);
    if (status != ADJ_OK)
        return status;
    *out = n->in[0]->type;
    for (int64_t i = 0; i < out->shape.rank; i++) {
        int64_t *dim = &out->shape.dim[i];
        if (__builtin_add_overflow(*dim, r->a.dim[i], dim) ||
            __builtin_add_overflow(*dim, r->b.dim[i], dim))
            return adj_fail(n->graph, ADJ_ESHAPE,
                            "pad: paddings overflow at axis %ld (got %ld and %ld)", (long)i,
                            (long)r->a.dim[i], (long)r->b.dim[i]);
    }
    return ADJ_OK;
}

static adj_status slice_infer(const adj_node *n, void *attrs, adj_type *out)
{
    adj_range_attrs *r = attrs;
    adj_shape x = n->in[0]->type.shape;
    adj_status status = check_list(n, "begin", &r->a);

    if (status == ADJ_OK)
        status = check_list(n, "size", &r->b);
    if (status != ADJ_OK)
        return status;
    for (int64_t i = 0; i < x.rank; i++)
        if (r->a.dim[i] > x.dim[i] || r->b.dim[i] > x.dim[i] - r->a.dim[i])
            return adj_fail(n->graph, ADJ_ESHAPE,
                            "slice: begin and size exceed input at axis %ld (got %ld and %ld, "
                            "expected at most %ld together)",
                            (long)i, (long)r->a.dim[i], (long)r->b.dim[i], (long)x.dim[i]);
    *out = (adj_type){.dtype = n->in[0]->type.dtype, .shape = r->b};
    return ADJ_OK;
}

static void pad_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    const adj_range_attrs *r = y->attrs;
    dx[0] = adj_slice(dy, r->a, y->in[0]->type.shape);
}

static void slice_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    const adj_range_attrs *r = y->attrs;
    adj_shape after = y->in[0]->type.shape;

    for (int64_t i = 0; i < after.rank; i++)
        after.dim[i] -= r->a.dim[i] + r->b.dim[i];
    dx[0] = adj_pad(dy, r->a, after);
}

/* Removes a pad that adds nothing. */
static adj_node *pad_simplify(const adj_node *n, adj_node *const in[])
{
    return adj_shape_equal(n->type.shape, in[0]->type.shape) ? in[0] : NULL;
}

static double third(adj_shape x, adj_format format, int axis)
{
    (void)format;
    return (double)(x.dim[axis] / 3);
}

static double rest(adj_shape x, adj_format format, int axis)
{
    return (double)x.dim[axis] - third(x, format, axis);
}

static const adj_schema pad_schema = {
    .size = sizeof(adj_range_attrs),
    .attr = {{"before", ADJ_ATTR_PER_AXIS, .offset = offsetof(adj_range_attrs, a),
              " before=", .fallback = 1},
             {"after", ADJ_ATTR_PER_AXIS, .offset = offsetof(adj_range_attrs, b),
              " after=", .fallback = 2}}};
static const adj_schema slice_schema = {
    .size = sizeof(adj_range_attrs),
    .attr = {
        {"begin", ADJ_ATTR_PER_AXIS, .offset = offsetof(adj_range_attrs, a),
         " begin=", .fallback_of = third},
        {"size", ADJ_ATTR_PER_AXIS, .offset = offsetof(adj_range_attrs, b), .fallback_of = rest}}};

const adj_op adj_op_pad = {.name = "pad",
                           .n_in = 1,
                           .flags = ADJ_OP_HALF,
                           .schema = &pad_schema,
                           .linear_in = ADJ_IN(0),
                           .infer = pad_infer,
                           .grad = pad_grad,
                           .simplify = pad_simplify};

const adj_op adj_op_slice = {.name = "slice",
                             .n_in = 1,
                             .flags = ADJ_OP_HALF,
                             .schema = &slice_schema,
                             .linear_in = ADJ_IN(0),
                             .infer = slice_infer,
                             .grad = slice_grad,
                             .simplify = adj_simplify_selection};

adj_node *adj_pad(adj_node *x, adj_shape before, adj_shape after)
{
    return adj_node_new1(&adj_op_pad, x, &(adj_range_attrs){.a = before, .b = after});
}

adj_node *adj_slice(adj_node *x, adj_shape begin, adj_shape size)
{
    return adj_node_new1(&adj_op_slice, x, &(adj_range_attrs){.a = begin, .b = size});
}

/* ---- concat ---- */

static adj_status check_fit(const adj_node *n, int i, int64_t axis)
{
    adj_type first = n->in[0]->type, t = n->in[i]->type;

    if (t.dtype != first.dtype)
        return adj_fail(n->graph, ADJ_EDTYPE,
                        "concat: values[%d] has the wrong dtype (got %s, expected %s)", i,
                        adj_dtype_name(t.dtype), adj_dtype_name(first.dtype));
    adj_shape expected = first.shape;
    if (t.shape.rank == expected.rank)
        expected.dim[axis] = t.shape.dim[axis];
    if (!adj_shape_equal(t.shape, expected))
        return adj_fail(
            n->graph, ADJ_ESHAPE,
            "concat: values[%d] does not fit values[0] (got %s, expected %s except at axis %ld)", i,
            adj_shape_text(t.shape).s, adj_shape_text(first.shape).s, (long)axis);
    return ADJ_OK;
}

static adj_status concat_infer(const adj_node *n, void *attrs, adj_type *out)
{
    int64_t *axis = &((adj_axis_attrs *)attrs)->axis, rank = n->in[0]->type.shape.rank, total = 0;

    if (*axis < -rank || *axis >= rank)
        return adj_fail(n->graph, ADJ_EARG,
                        "concat: axis is out of range (got %ld, expected %ld to %ld)", (long)*axis,
                        (long)-rank, (long)rank - 1);
    if (*axis < 0)
        *axis += rank;
    for (int i = 0; i < n->n_in; i++) {
        adj_status status = check_fit(n, i, *axis);
        if (status != ADJ_OK)
            return status;
        if (__builtin_add_overflow(total, n->in[i]->type.shape.dim[*axis], &total))
            return adj_fail(n->graph, ADJ_ESHAPE, "concat: the sizes along axis %ld overflow",
                            (long)*axis);
    }
    *out = n->in[0]->type;
    out->shape.dim[*axis] = total;
    return ADJ_OK;
}

static void concat_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    int64_t axis = ((const adj_axis_attrs *)y->attrs)->axis;
    adj_shape begin = {.rank = y->type.shape.rank};

    for (int i = 0; i < y->n_in; i++) {
        adj_shape size = y->in[i]->type.shape;
        dx[i] = adj_slice(dy, begin, size);
        begin.dim[axis] += size.dim[axis];
    }
}

/* True if x is a transpose, of the same order of axes as the transpose first. */
static int is_turned_as(const adj_node *x, const adj_node *first)
{
    return x->op == &adj_op_transpose &&
           memcmp(x->attrs, first->attrs, sizeof(adj_transpose_attrs)) == 0;
}

/* Concatenates before equal transposes of all operands instead of behind them: the transpose of the
 * result may meet its inverse. */
static adj_node *concat_simplify(const adj_node *n, adj_node *const in[])
{
    const int64_t axis = ((const adj_axis_attrs *)n->attrs)->axis;
    adj_node **x;

    if (n->n_in == 1)
        return in[0];
    for (int i = 0; i < n->n_in; i++)
        if (!is_turned_as(in[i], in[0]))
            return NULL;
    if ((x = adj_graph_alloc(in[0]->graph, (size_t)n->n_in * sizeof *x)) == NULL)
        return NULL;
    for (int i = 0; i < n->n_in; i++)
        x[i] = in[i]->in[0];
    const int64_t before = ((const adj_transpose_attrs *)in[0]->attrs)->perm[axis];
    adj_node *y = adj_concat(n->n_in, x, (int)before);
    return adj_node_new1(&adj_op_transpose, y, in[0]->attrs);
}

static const adj_schema concat_schema = {
    .size = sizeof(adj_axis_attrs),
    .attr = {{"axis", ADJ_ATTR_INT, .offset = offsetof(adj_axis_attrs, axis),
              " axis=", .fallback = -1}}};

const adj_op adj_op_concat = {.name = "concat",
                              .example = {ADJ_EXAMPLE_X, ADJ_EXAMPLE_FILTER_OR_X},
                              .n_in = ADJ_MANY,
                              .flags = ADJ_OP_HALF,
                              .schema = &concat_schema,
                              .linear_in = ADJ_ALL_IN,
                              .sum_in = ADJ_ALL_IN,
                              .infer = concat_infer,
                              .grad = concat_grad,
                              .simplify = concat_simplify};

adj_node *adj_concat(int n, adj_node *const x[], int axis)
{
    if (n < 1 || x == NULL || x[0] == NULL)
        return NULL;
    return adj_node_new(x[0]->graph, &adj_op_concat, n, x, &(adj_axis_attrs){.axis = axis});
}
