/* broadcast.c - broadcast_to repeats a tensor along axes of size 1 and new leading axes, as
 * NumPy does; adj_sum_to, its adjoint, is for gradient rules. */
#include "graph/op.h"

static adj_status broadcast_to_infer(const adj_node *n, void *attrs, adj_type *out)
{
    adj_shape *shape = &((adj_shape_attrs *)attrs)->shape, x = n->in[0]->type.shape;

    *out = (adj_type){.dtype = n->in[0]->type.dtype, .shape = *shape};
    adj_status status = adj_check_type(n->graph, "broadcast_to", "shape", *out);
    if (status != ADJ_OK)
        return status;
    for (int64_t i = shape->rank; i < ADJ_MAX_RANK; i++)
        shape->dim[i] = 0;
    out->shape = *shape;
    int64_t added = shape->rank - x.rank;
    int fits = added >= 0;
    for (int64_t i = 0; fits && i < x.rank; i++)
        fits = x.dim[i] == 1 || x.dim[i] == shape->dim[added + i];
    if (!fits)
        return adj_fail(n->graph, ADJ_ESHAPE,
                        "broadcast_to: input does not broadcast to shape (got %s and %s, expected "
                        "equal sizes or 1 in input at each axis)",
                        adj_shape_text(x).s, adj_shape_text(*shape).s);
    return ADJ_OK;
}

static void broadcast_to_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    dx[0] = adj_sum_to(dy, y->in[0]->type.shape);
}

static double of_x(adj_shape x, adj_format format, int axis)
{
    (void)format;
    return (double)x.dim[axis];
}

static const adj_schema schema = {
    .size = sizeof(adj_shape_attrs),
    .attr = {{"shape", ADJ_ATTR_SHAPE, .offset = offsetof(adj_shape_attrs, shape),
              .fallback_of = of_x}}};

const adj_op adj_op_broadcast_to = {.name = "broadcast_to",
                                    .example = {ADJ_EXAMPLE_ROW_OR_X},
                                    .n_in = 1,
                                    .flags = ADJ_OP_HALF,
                                    .schema = &schema,
                                    .linear_in = ADJ_IN(0),
                                    .infer = broadcast_to_infer,
                                    .grad = broadcast_to_grad,
                                    .simplify = adj_simplify_selection};

adj_node *adj_broadcast_to(adj_node *x, adj_shape shape)
{
    return adj_node_new1(&adj_op_broadcast_to, x, &(adj_shape_attrs){.shape = shape});
}

adj_node *adj_sum_to(adj_node *x, adj_shape shape)
{
    if (x == NULL || adj_shape_equal(x->type.shape, shape))
        return x;
    adj_axes axes = {.keep_dims = 1};
    int64_t added = x->type.shape.rank - shape.rank;
    for (int64_t i = 0; i < x->type.shape.rank; i++)
        if (x->type.shape.dim[i] != (i < added ? 1 : shape.dim[i - added]))
            axes.axis[axes.n++] = (int)i;
    if (axes.n > 0)
        x = adj_reduce_sum(x, axes);
    return added > 0 ? adj_reshape(x, shape) : x;
}
