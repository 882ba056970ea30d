/* argmax.c - the index of the largest element along an axis, as i32: the first of equal
 * elements, and the first NaN if there is one. It has no derivative. */
#include "graph/op.h"

static adj_status infer(const adj_node *n, void *attrs, adj_type *out)
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

static const adj_schema schema = {
    .size = sizeof(adj_axis_attrs),
    .attr = {{"axis", ADJ_ATTR_INT, .offset = offsetof(adj_axis_attrs, axis),
              " axis=", .fallback = -1}}};

const adj_op adj_op_argmax = {.name = "argmax",
                              .n_in = 1,
                              .schema = &schema,
                              .flags = ADJ_OP_KINKS | ADJ_OP_NO_GRADIENT,
                              .infer = infer};

adj_node *adj_argmax(adj_node *x, int axis)
{
    return adj_node_new1(&adj_op_argmax, x, &(adj_axis_attrs){.axis = axis});
}
