/* prelu.c - x where x > 0, else slope x, the slope being a parameter: one per channel, or one
 * for all. Equals PyTorch's prelu, and ONNX's PRelu with a slope of these shapes. With S the sum
 * over the axes along which the slope is broadcast:
 *   y  = prelu(x, slope)            x where x > 0, else slope x
 *        dx  = prelu_grad(dy, x, slope)     dslope = prelu_grad_slope(dy, x)
 *   dx = prelu_grad(dy, x, slope)   dy where x > 0, else slope dy
 *        ddy = prelu_grad(e, x, slope)      dslope = S(e dy where x <= 0)
 *   ds = prelu_grad_slope(dy, x)    S(x dy where x <= 0)
 *        ddy = prelu(x, e) - relu(x)        dx = prelu_grad(dy, x, e) - relu_grad(dy, x) */
#include "activation.h"
#include "channel.h"
#include "grad.h"

static double slopes_of(adj_shape x, adj_format format, int axis)
{
    (void)axis;
    return x.rank > 1 ? (double)x.dim[channel_axis(x, format)] : 1;
}

static const adj_schema slopes_schema = {
    .size = sizeof(adj_prelu_attrs),
    .attr = {{"slopes", ADJ_ATTR_INT, .offset = offsetof(adj_prelu_attrs, slopes),
              .fallback_of = slopes_of},
             {"data_format", ADJ_ATTR_FORMAT, .offset = offsetof(adj_prelu_attrs, format)}}};

/* Infers the type; the slope is the last operand. */
static adj_status infer(const adj_node *n, void *attrs, adj_type *out)
{
    const adj_format_attrs *a = attrs;
    adj_status status = adj_check_same(n, n->n_in - 1, out);
    if (status == ADJ_OK)
        status = adj_check_same_dtype(n);
    if (status == ADJ_OK)
        status = check_channels(n);
    if (status != ADJ_OK)
        return status;
    adj_shape slope = n->in[n->n_in - 1]->type.shape;
    int64_t c = channels_of(n->in[0], a->format);
    if (slope.rank != 1 || (slope.dim[0] != 1 && slope.dim[0] != c))
        return adj_fail(n->graph, ADJ_ESHAPE,
                        "%s: slope has a wrong shape (got %s, expected [%ld] or [1])", n->op->name,
                        adj_shape_text(slope).s, (long)c);
    return ADJ_OK;
}

static adj_status grad_slope_infer(const adj_node *n, void *attrs, adj_type *out)
{
    const adj_prelu_attrs *a = attrs;
    adj_status status = adj_check_same(n, 2, out);
    if (status == ADJ_OK)
        status = check_channels(n);
    if (status != ADJ_OK)
        return status;
    int64_t c = channels_of(n->in[0], a->format);
    if (a->slopes != 1 && a->slopes != c)
        return adj_fail(n->graph, ADJ_EARG, "%s: slopes is wrong (got %ld, expected %ld or 1)",
                        n->op->name, (long)a->slopes, (long)c);
    out->shape = (adj_shape){1, {a->slopes}};
    return ADJ_OK;
}

static void rule(adj_node *y, adj_node *dy, adj_node *dx[])
{
    adj_node *x = y->in[0], *slope = y->in[1];
    dx[0] = adj_prelu_grad(dy, x, slope, adj_format_of(y));
    dx[1] = adj_prelu_grad_slope(dy, x, slope->type.shape.dim[0], adj_format_of(y));
}

static void grad_rule(adj_node *dx, adj_node *e, adj_node *de[])
{
    adj_node *dy = dx->in[0], *x = dx->in[1], *slope = dx->in[2];
    de[0] = adj_prelu_grad(e, x, slope, adj_format_of(dx));
    de[1] = NULL;
    adj_node *m = adj_mul(e, dy), *terms = adj_sub(m, adj_relu_grad(m, x));
    de[2] = slope->type.shape.dim[0] == 1 ? adj_sum_to(terms, slope->type.shape)
                                          : adj_bias_add_grad(terms, adj_format_of(dx));
}

static void grad_slope_rule(adj_node *ds, adj_node *e, adj_node *de[])
{
    adj_node *dy = ds->in[0], *x = ds->in[1];
    adj_node *y = adj_prelu(x, e, adj_format_of(ds));
    de[0] = adj_sub(y, adj_relu(x));
    adj_node *dx = adj_prelu_grad(dy, x, e, adj_format_of(ds));
    de[1] = adj_sub(dx, adj_relu_grad(dy, x));
}

/* Draws no x near 0: a slope's gradient, a sum over many x, has a kink wherever one of them has. */
static void domain(const adj_node *n, int i, int64_t count, double v[])
{
    if (i == (n->op == &adj_op_prelu ? 0 : 1))
        keep_from_zero(count, v);
}

const adj_op adj_op_prelu = {.name = "prelu",
                             .example = {ADJ_EXAMPLE_X, ADJ_EXAMPLE_FILTER_OR_CHANNELS},
                             .n_in = 2,
                             .schema = &format_schema,
                             .flags = ADJ_OP_KINKS | ADJ_OP_HALF | ADJ_OP_CHEAP,
                             .infer = infer,
                             .grad = rule,
                             .operand = {"x", "slope"},
                             .images = ADJ_IN(0) | ADJ_IMAGE_RESULT,
                             .domain = domain};

const adj_op adj_op_prelu_grad = {
    .name = "prelu_grad",
    .example = {ADJ_EXAMPLE_X, ADJ_EXAMPLE_X, ADJ_EXAMPLE_FILTER_OR_CHANNELS},
    .n_in = 3,
    .schema = &format_schema,
    .flags = ADJ_OP_KINKS | ADJ_OP_HALF,
    .linear_in = ADJ_IN(0),
    .infer = infer,
    .grad = grad_rule,
    .operand = {"dy", "x", "slope"},
    .images = ADJ_IN(0) | ADJ_IN(1) | ADJ_IMAGE_RESULT,
    .domain = domain};

const adj_op adj_op_prelu_grad_slope = {.name = "prelu_grad_slope",
                                        .example = {ADJ_EXAMPLE_X, ADJ_EXAMPLE_X},
                                        .n_in = 2,
                                        .schema = &slopes_schema,
                                        .flags = ADJ_OP_KINKS,
                                        .linear_in = ADJ_IN(0),
                                        .infer = grad_slope_infer,
                                        .grad = grad_slope_rule,
                                        .operand = {"dy", "x"},
                                        .images = ADJ_IN(0) | ADJ_IN(1),
                                        .domain = domain};

adj_node *adj_prelu(adj_node *x, adj_node *slope, adj_format format)
{
    return adj_node_new2(&adj_op_prelu, x, slope, &(adj_format_attrs){format});
}

adj_node *adj_prelu_grad(adj_node *dy, adj_node *x, adj_node *slope, adj_format format)
{
    return adj_node_new3(&adj_op_prelu_grad, dy, x, slope, &(adj_format_attrs){format});
}

adj_node *adj_prelu_grad_slope(adj_node *dy, adj_node *x, int64_t slopes, adj_format format)
{
    return adj_node_new2(&adj_op_prelu_grad_slope, dy, x, &(adj_prelu_attrs){format, slopes});
}
