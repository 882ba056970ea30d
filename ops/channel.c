/* channel.c - see channel.h. */
#include "channel.h"

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
