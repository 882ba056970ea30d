/* elementwise.c - arithmetic of several operands, comparisons, logic, selection, casts,
 * quantization.
 *
 * Truth values in a run are 0 and 1 of the float type in which the file's float is computed. */
#include <inttypes.h>
#include <math.h>

#include "import.h"

/* Returns operand i; truth values and integers as floats of that type. */
static adj_node *as_float(call *n, int i, adj_dtype dtype)
{
    return adj_in_dtype(in_beside(n, i), dtype);
}

static int is_sigmoid_of(const adj_node *y, const adj_node *x)
{
    return y->op == &adj_op_sigmoid && y->in[0] == x;
}

adj_node *product_or_silu(adj_node *a, adj_node *b)
{
    if (a == NULL || b == NULL)
        return NULL;
    return is_sigmoid_of(b, a) ? adj_silu(a) : is_sigmoid_of(a, b) ? adj_silu(b) : adj_mul(a, b);
}

int import_mean(call *n)
{
    adj_node *sum = in_node(n, 0);
    for (int i = 1; i < n->n_in; i++)
        sum = adj_add(sum, in_node(n, i));
    return give(n, adj_scale(sum, 1.0 / n->n_in));
}

/* Exponents of 1, 2 and 1/2 have cheaper ops. */
int import_pow(call *n)
{
    const numbers *p = has_in(n, 1) ? n->in[1]->known : NULL;
    adj_node *x = in_node(n, 0);
    if (x == NULL)
        return 0;
    const double value =
        p != NULL && p->n == 1 && p->shape.rank <= shape_of(x).rank ? number_at(p, 0) : NAN;
    if (value == 1 || value == 2)
        return give(n, value == 1 ? x : adj_square(x));
    if (value == 0.5)
        return give(n, adj_sqrt(x));
    return give(n, adj_pow(x, as_float(n, 1, adj_node_type(x).dtype)));
}

/* ---- comparisons ---- */

adj_node *greater(adj_node *a, adj_node *b)
{
    adj_node *above = adj_greater_equal(a, b);
    return adj_sub(above, adj_equal(a, b));
}

adj_node *less(adj_node *a, adj_node *b) { return greater(b, a); }
adj_node *less_or_equal(adj_node *a, adj_node *b) { return adj_greater_equal(b, a); }

int import_comparison(call *n)
{
    adj_node *a = in_node(n, 0), *b = in_beside(n, 1);
    if (adj_node_type(a).dtype == ADJ_I32) {
        a = adj_cast(a, ADJ_F64);
        b = adj_cast(b, ADJ_F64);
    }
    return give_at(n, 0, adj_in_dtype(n->row->binary(a, b), n->f->o->dtype), ELEM_BOOL);
}

/* -1, 0 or 1; no gradient passes. */
adj_node *sign_of(adj_node *x)
{
    adj_node *zero = adj_scalar_like(x, 0);
    return adj_sub(adj_greater_equal(x, zero), adj_greater_equal(zero, x));
}

/* x moved towards 0 by a bias where |x| > lambd, else 0. */
int import_shrink(call *n)
{
    adj_node *x = in_node(n, 0);
    adj_node *is_kept = greater(adj_abs(x), adj_scalar_like(x, attr_float(n, "lambd", 0.5)));
    adj_node *moved = adj_sub(x, adj_scale(sign_of(x), attr_float(n, "bias", 0)));
    return give(n, adj_mul(moved, is_kept));
}

/* ---- logic ---- */

adj_node *different(adj_node *a, adj_node *b)
{
    adj_node *equal = adj_equal(a, b);
    return adj_sub(adj_scalar_like(equal, 1), equal);
}

int import_logic(call *n)
{
    const adj_dtype dtype = n->f->o->dtype;
    adj_node *a = as_float(n, 0, dtype), *b = as_float(n, 1, dtype);
    return give_at(n, 0, n->row->binary(a, b), ELEM_BOOL);
}

int import_not(call *n)
{
    adj_node *x = as_float(n, 0, n->f->o->dtype);
    return give_at(n, 0, adj_sub(adj_scalar_like(x, 1), x), ELEM_BOOL);
}

/* ---- selection, casts ---- */

/* x, broadcast to the shape of the mask, where the mask is above 0; else 0, also for infinite x. */
static adj_node *masked(adj_node *x, adj_node *mask)
{
    return mask != NULL ? adj_relu_grad(broadcast(x, shape_of(mask)), mask) : NULL;
}

int import_where(call *n)
{
    adj_node *a = in_node(n, 1), *b = in_node(n, 2);
    if (a == NULL || b == NULL)
        return 0;
    adj_node *c = as_float(n, 0, adj_node_type(a).dtype);
    if (adj_node_type(a).dtype == ADJ_I32)
        return refuse(n, "integers that are not known when the file is read");
    adj_shape both = {0}, all = {0};
    const adj_shape sa = shape_of(a), sb = shape_of(b), sc = c != NULL ? shape_of(c) : sa;
    if (!joint_shape(n, &sa, &sb, &both) || !joint_shape(n, &both, &sc, &all))
        return 0;
    adj_node *mask = broadcast(c, all);
    adj_node *from_a = masked(a, mask),
             *from_b = masked(b, adj_sub(adj_scalar_like(mask, 1), mask));
    return give(n, adj_add(from_a, from_b));
}

int import_cast(call *n)
{
    const int is_like = has_in(n, 1);
    const int to = is_like ? n->in[1]->elem : (int)attr_int(n, "to", 0);
    adj_node *x = in_node(n, 0);
    if (!elem_is_float(to) && !elem_is_integer(to))
        return refuse(n, "a cast to %s", elem_name(to));
    const adj_dtype dtype = dtype_of_elem(n->f, to);
    if (to == ELEM_BOOL) {
        if (adj_node_type(x).dtype == ADJ_I32)
            x = adj_cast(x, dtype);
        x = different(x, adj_scalar_like(x, 0));
    }
    return give_at(n, 0, adj_in_dtype(x, dtype), to);
}

int import_identity(call *n)
{
    const value *v = n->in[0];
    if (v == NULL)
        return refuse(n, "its operand is missing");
    n->out[0] = *v;
    if (v->is_weight)
        return give_at(n, 0, in_node(n, 0), v->elem);
    return 1;
}

/* The nodes of one branch take the place of an If whose condition is known while loading. */
int import_if(call *n)
{
    import *f = n->f;
    const numbers *condition = in_known(n, 0);
    if (condition == NULL || condition->n != 1)
        return refuse(n, "its condition is no truth value");
    const int is_true = number_at(condition, 0) != 0;
    const Onnx__AttributeProto *a = attribute(n, is_true ? "then_branch" : "else_branch");
    const int n_refused = f->n_refused;
    if (a == NULL || a->g == NULL || (int)a->g->n_output != n->n_out)
        return refuse(n, "its branch is missing, or has another number of results");
    if (!add_initializers(f, a->g) || !import_nodes(f, a->g))
        return 0;
    if (f->n_refused > n_refused)
        return refuse(n, "a node of its branch is not supported");
    for (int i = 0; i < n->n_out; i++) {
        const char *name = a->g->output[i]->name;
        const value *v = name != NULL ? find_value(f, name) : NULL;
        if (v == NULL)
            return refuse(n, "no node computes a result of its branch");
        n->out[i] = *v;
    }
    return 1;
}

/* ---- fake quantization ----
 *
 * A quantized value stays a float, rounded and limited to the integers of its type, and gradients
 * pass through the rounding unchanged. */

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
    adj_node *v = adj_in_dtype(in_node(n, i), adj_node_type(x).dtype);
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
static adj_node *rounded_to_integer(adj_node *x)
{
    adj_node *large = adj_scalar_like(x, adj_node_type(x).dtype == ADJ_F64 ? 0x1.8p52 : 0x1.8p23);
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
    y = adj_add(y, adj_stop_gradient(adj_sub(rounded_to_integer(y), y)));
    if (has_in(n, 2))
        y = adj_add(y, along_axis(n, 2, x, axis));
    return give_at(n, 0, adj_clip(y, low, high), elem);
}

int import_dequantize(call *n)
{
    adj_node *x = adj_in_dtype(in_node(n, 0), n->f->o->dtype);
    if (x == NULL)
        return 0;
    const int axis = axis_of(n, attr_int(n, "axis", shape_of(x).rank > 1), shape_of(x).rank + 1);
    if (axis < 0)
        return 0;
    if (has_in(n, 2))
        x = adj_sub(x, along_axis(n, 2, x, axis));
    return give_at(n, 0, adj_mul(x, along_axis(n, 1, x, axis)), ELEM_FLOAT);
}
