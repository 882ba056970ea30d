/* channel.c - see channel.h. */
#include "channel.h"
#include "grad.h"

const adj_schema format_schema = {
    .size = sizeof(adj_format_attrs),
    .attr = {{"data_format", ADJ_ATTR_FORMAT, .offset = offsetof(adj_format_attrs, format)}}};

int channel_axis(adj_shape x, int64_t format) { return format == ADJ_NCHW ? 1 : (int)x.rank - 1; }

int64_t channels_of(const adj_node *x, int64_t format)
{
    return x->type.shape.dim[channel_axis(x->type.shape, format)];
}

adj_status check_channels(const adj_node *n)
{
    adj_type x = n->in[0]->type;

    if (!adj_is_float(x.dtype))
        return adj_fail(n->graph, ADJ_EDTYPE, "%s: %s must be a float type (got %s)", n->op->name,
                        n->op->operand[0], adj_dtype_name(x.dtype));
    if (x.shape.rank < 2 || x.shape.rank > 5)
        return adj_fail(n->graph, ADJ_ESHAPE,
                        "%s: %s has the wrong rank (got %s, expected rank 2 to 5)", n->op->name,
                        n->op->operand[0], adj_shape_text(x.shape).s);
    return ADJ_OK;
}

/* ---- normalization ---- */

adj_dtype adj_stats_dtype(adj_dtype x) { return x == ADJ_F64 ? ADJ_F64 : ADJ_F32; }

/* Returns the type [rows, c], or [c] for rows == 0, of the statistics dtype. */
static adj_type norm_stats_type(const adj_node *x, int64_t format, int rows)
{
    int64_t c = channels_of(x, format);
    adj_shape shape = {.rank = 1, .dim = {c}};
    if (rows > 0)
        shape = (adj_shape){.rank = 2, .dim = {rows, c}};
    return (adj_type){adj_stats_dtype(x->type.dtype), shape};
}

adj_status channel_infer(const adj_node *n, void *attrs, adj_type *out)
{
    const adj_node *x = n->in[0], with = {.op = n->op, .attrs = attrs};
    const int64_t format = adj_format_of(&with);
    adj_status status = check_channels(n);
    if (status != ADJ_OK)
        return status;
    *out = n->op->images & ADJ_IMAGE_RESULT ? x->type : norm_stats_type(x, format, 2);
    for (int i = 1; i < n->n_in && status == ADJ_OK; i++) {
        const adj_example kind = n->op->example[i];
        const int is_vector = kind == ADJ_EXAMPLE_STATISTIC || kind == ADJ_EXAMPLE_CHANNELS;
        adj_type want =
            kind == ADJ_EXAMPLE_X ? x->type : norm_stats_type(x, format, is_vector ? 0 : 2);
        if (kind == ADJ_EXAMPLE_CHANNELS)
            want.dtype = x->type.dtype;
        status = adj_check_operand(n, i, want);
    }
    return status;
}

/* ---- pieces of gradient rules ---- */

adj_node *adj_stats_row(adj_node *v, int i)
{
    if (v == NULL)
        return NULL;
    int64_t c = v->type.shape.dim[1];
    adj_node *r =
        adj_slice(v, (adj_shape){.rank = 2, .dim = {i, 0}}, (adj_shape){.rank = 2, .dim = {1, c}});
    return adj_reshape(r, (adj_shape){.rank = 1, .dim = {c}});
}

adj_node *adj_stats_of(adj_node *mean, adj_node *variance)
{
    if (mean == NULL || variance == NULL)
        return NULL;
    adj_shape one = {.rank = 2, .dim = {1, adj_shape_elems(mean->type.shape)}};
    adj_node *const rows[] = {adj_reshape(mean, one), adj_reshape(variance, one)};
    return adj_concat(2, rows, 0);
}

adj_node *norm_along(adj_node *v, const adj_node *x, int64_t format)
{
    adj_shape shape = {.rank = x->type.shape.rank};
    for (int i = 0; i < shape.rank; i++)
        shape.dim[i] = 1;
    shape.dim[channel_axis(x->type.shape, format)] = channels_of(x, format);
    return adj_reshape(v, shape);
}

adj_node *norm_times(adj_node *x, adj_node *v, int64_t format)
{
    if (x == NULL)
        return NULL;
    return adj_mul(x, adj_in_dtype(norm_along(v, x, format), x->type.dtype));
}

adj_node *norm_dot(adj_node *a, adj_node *b, int64_t format)
{
    if (a == NULL)
        return NULL;
    adj_dtype dtype = adj_stats_dtype(a->type.dtype);
    adj_axes others = {0};
    for (int i = 0; i < a->type.shape.rank; i++)
        if (i != channel_axis(a->type.shape, format))
            others.axis[others.n++] = i;
    adj_node *second = adj_in_dtype(b, dtype);
    return adj_reduce_sum(adj_mul(adj_in_dtype(a, dtype), second), others);
}
