/* pad.c - pad surrounds a tensor with zeros, slice extracts a box from one. Any dtype.
 *
 * Each is the other's adjoint:
 *   y = pad(x, before, after)     dx = slice(dy, before, shape of x)
 *   y = slice(x, begin, size)     dx = pad(dy, begin, shape of x - begin - size) */
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
    for (int64_t i = rank; i < ADJ_MAX_RANK; i++)
        list->dim[i] = 0;
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
