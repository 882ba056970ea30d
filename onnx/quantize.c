/* quantize.c - QuantizeLinear and DequantizeLinear as fake quantization: a quantized value stays a
 * float, rounded and limited to the integers of its type, and gradients pass through the rounding
 * unchanged. */
#include <inttypes.h>
#include <math.h>

#include "import.h"

/* v's elements along an axis, each block times, cut off at size. */
static adj_node *repeated(adj_node *v, int axis, int64_t block, int64_t size)
{
    adj_shape s = shape_of(v);
    const int64_t pre = product(&s, 0, axis), k = s.dim[axis];
    const int64_t post = product(&s, axis + 1, (int)s.rank);
    adj_node *once = adj_reshape(v, (adj_shape){4, {pre, k, 1, post}});
    s.dim[axis] *= block;
    adj_node *all = adj_broadcast_to(once, (adj_shape){4, {pre, k, block, post}});
    return all != NULL ? slice_axis(adj_reshape(all, s), axis, 0, size) : NULL;
}

/* Operand i in a shape that broadcasts it to x: a list along the axis, or, with block_size, an
 * element for each block along it; a scalar stays one. */
static adj_node *along_axis(call *n, int i, const adj_node *x, int axis)
{
    adj_node *v = as_dtype(in_node(n, i), adj_node_type(x).dtype);
    if (v == NULL)
        return NULL;
    adj_shape s = shape_of(v), one = {.rank = shape_of(x).rank};
    const int64_t block = attr_int(n, "block_size", 0);
    if (block > 0 && s.rank == one.rank && axis < one.rank) {
        const int64_t size = shape_of(x).dim[axis];
        if (block <= INT32_MAX && (size + block - 1) / block == s.dim[axis])
            return repeated(v, axis, block, size);
        refuse(n, "block_size %" PRId64 " does not fit %" PRId64 " elements and %" PRId64 " scales",
               block, size, s.dim[axis]);
        return NULL;
    }
    if (s.rank != 1 || s.dim[0] == 1)
        return s.rank == 1 ? adj_reshape(v, (adj_shape){0}) : v;
    for (int k = 0; k < one.rank; k++)
        one.dim[k] = k == axis ? s.dim[0] : 1;
    return adj_reshape(v, one);
}

/* x rounded to the nearest even integer, by a sum that leaves no bits for fractions; values beyond
 * the integers of the element type are limited afterwards. */
static adj_node *rounded(adj_node *x)
{
    adj_node *large = scalar(x, adj_node_type(x).dtype == ADJ_F64 ? 0x1.8p52 : 0x1.8p23);
    return adj_sub(adj_add(x, large), large);
}

int import_quantize(call *n)
{
    const int given = (int)attr_int(n, "output_dtype", 0);
    const int elem = has_in(n, 2) ? n->in[2]->elem
                     : given != 0 ? given
                                  : ONNX__TENSOR_PROTO__DATA_TYPE__UINT8;
    double low, high;
    adj_node *x = in_node(n, 0);
    if (!elem_limits(elem, &low, &high))
        return refuse(n, "quantization to %s (expected integers of 8 or 16 bits)", elem_name(elem));
    if (x == NULL || (adj_node_type(x).dtype != ADJ_F32 && adj_node_type(x).dtype != ADJ_F64))
        return refuse(n, "quantization of a half type");
    const int axis = axis_of(n, attr_int(n, "axis", shape_of(x).rank > 1), shape_of(x).rank + 1);
    adj_node *scale = axis >= 0 ? along_axis(n, 1, x, axis) : NULL;
    if (scale == NULL)
        return 0;
    adj_node *y = adj_clip(adj_div(x, scale), -0x1p21, 0x1p21);
    y = adj_add(y, adj_stop_gradient(adj_sub(rounded(y), y)));
    if (has_in(n, 2))
        y = adj_add(y, along_axis(n, 2, x, axis));
    return give_at(n, 0, adj_clip(y, low, high), elem);
}

int import_dequantize(call *n)
{
    adj_node *x = as_dtype(in_node(n, 0), n->f->o->dtype);
    if (x == NULL)
        return 0;
    const int axis = axis_of(n, attr_int(n, "axis", shape_of(x).rank > 1), shape_of(x).rank + 1);
    if (axis < 0)
        return 0;
    if (has_in(n, 2))
        x = adj_sub(x, along_axis(n, 2, x, axis));
    return give_at(n, 0, adj_mul(x, along_axis(n, 1, x, axis)), ELEM_FLOAT);
}
