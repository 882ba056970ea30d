/* norm.c - see norm.h. */
#include <math.h>

#include "norm.h"

adj_dtype norm_stats_dtype(adj_dtype x) { return x == ADJ_F64 ? ADJ_F64 : ADJ_F32; }

int norm_channel_axis(const adj_node *x, int64_t format)
{
    return format == ADJ_NCHW ? 1 : (int)x->type.shape.rank - 1;
}

int64_t norm_channels(const adj_node *x, int64_t format)
{
    return x->type.shape.dim[norm_channel_axis(x, format)];
}

adj_type norm_stats_type(const adj_node *x, int64_t format, int rows)
{
    int64_t c = norm_channels(x, format);
    adj_shape shape = {.rank = 1, .dim = {c}};
    if (rows > 0)
        shape = (adj_shape){.rank = 2, .dim = {rows, c}};
    return (adj_type){norm_stats_dtype(x->type.dtype), shape};
}

/* ---- checks ---- */

adj_status norm_check_x(const adj_node *n)
{
    adj_type x = n->in[0]->type;

    if (!adj_is_float(x.dtype))
        return adj_fail(n->graph, ADJ_EDTYPE, "%s: x must be a float type (got %s)", n->op->name,
                        adj_dtype_name(x.dtype));
    if (x.shape.rank < 2 || x.shape.rank > 5)
        return adj_fail(n->graph, ADJ_ESHAPE,
                        "%s: x has the wrong rank (got %s, expected rank 2 to 5)", n->op->name,
                        adj_shape_text(x.shape).s);
    return ADJ_OK;
}

adj_status norm_check_operand(const adj_node *n, int i, adj_type want)
{
    adj_type got = n->in[i]->type;
    const char *name = n->op->operand[i];

    if (got.dtype != want.dtype)
        return adj_fail(n->graph, ADJ_EDTYPE, "%s: %s has the wrong type (got %s, expected %s)",
                        n->op->name, name, adj_dtype_name(got.dtype), adj_dtype_name(want.dtype));
    if (!adj_shape_equal(got.shape, want.shape))
        return adj_fail(n->graph, ADJ_ESHAPE, "%s: %s has the wrong shape (got %s, expected %s)",
                        n->op->name, name, adj_shape_text(got.shape).s,
                        adj_shape_text(want.shape).s);
    return ADJ_OK;
}

int norm_check_format(const adj_node *x, const char *op, adj_format format)
{
    if (format == ADJ_NHWC || format == ADJ_NCHW)
        return 1;
    adj_fail(x->graph, ADJ_EARG, "%s: data_format is unknown (got %d, expected NHWC or NCHW)", op,
             (int)format);
    return 0;
}

int norm_check_epsilon(const adj_node *x, const char *op, double epsilon)
{
    if (epsilon >= 0 && isfinite(epsilon))
        return 1;
    adj_fail(x->graph, ADJ_EARG, "%s: epsilon is out of range (got %g, expected >= 0)", op,
             epsilon);
    return 0;
}

/* ---- pieces of gradient rules ---- */

adj_node *norm_in_dtype(adj_node *v, adj_dtype dtype)
{
    return v == NULL || v->type.dtype == dtype ? v : adj_cast(v, dtype);
}

adj_node *norm_row(adj_node *v, int i)
{
    if (v == NULL)
        return NULL;
    int64_t c = v->type.shape.dim[1];
    adj_node *r =
        adj_slice(v, (adj_shape){.rank = 2, .dim = {i, 0}}, (adj_shape){.rank = 2, .dim = {1, c}});
    return adj_reshape(r, (adj_shape){.rank = 1, .dim = {c}});
}

adj_node *norm_two_rows(adj_node *a, adj_node *b)
{
    if (a == NULL || b == NULL)
        return NULL;
    adj_shape one = {.rank = 2, .dim = {1, a->type.shape.dim[0]}};
    adj_node *const rows[] = {adj_reshape(a, one), adj_reshape(b, one)};
    return adj_concat(2, rows, 0);
}

adj_node *norm_along(adj_node *v, const adj_node *x, int64_t format)
{
    adj_shape shape = {.rank = x->type.shape.rank};
    for (int i = 0; i < shape.rank; i++)
        shape.dim[i] = 1;
    shape.dim[norm_channel_axis(x, format)] = norm_channels(x, format);
    return adj_reshape(v, shape);
}

adj_node *norm_times(adj_node *x, adj_node *v, int64_t format)
{
    if (x == NULL)
        return NULL;
    return adj_mul(x, norm_in_dtype(norm_along(v, x, format), x->type.dtype));
}

adj_node *norm_dot(adj_node *a, adj_node *b, int64_t format)
{
    if (a == NULL)
        return NULL;
    adj_dtype dtype = norm_stats_dtype(a->type.dtype);
    adj_axes others = {0};
    for (int i = 0; i < a->type.shape.rank; i++)
        if (i != norm_channel_axis(a, format))
            others.axis[others.n++] = i;
    adj_node *second = norm_in_dtype(b, dtype);
    return adj_reduce_sum(adj_mul(norm_in_dtype(a, dtype), second), others);
}
