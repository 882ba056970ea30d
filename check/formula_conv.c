/* formula_conv.c - the six convolutions by their one definition in float64: for each pixel and
 * channel of y and each tap of the filter, y += x w. Two of the three are known, an element of the
 * third is the sum of its products; TensorFlow's tf.nn.conv2d has it for VALID, geometry for the
 * rest. See formula.h.
 *
 * With padding, what stands around x counts as zeros in these sums, and in the gradient of x what
 * stands around and between y. That is the same, but where a zero meets a NaN or an infinity. */
#include "formula_image.h"

/* Values of a convolution, or their gradients; the one that is computed is NULL. */
typedef struct {
    const adj_conv_geom *g;
    adj_shape x_shape, y_shape;
    const double *x, *w, *y;
    int64_t in_group, out_group; /* channels */
} relation;

/* The convolution of n, whose result is y, x or w. */
static relation relation_of(const adj_node *n, double *const in[])
{
    const adj_shape result = n->type.shape, first = n->in[0]->type.shape,
                    second = n->in[1]->type.shape;
    const adj_conv_geom *g = adj_node_geom(n);
    const int64_t in_group = g->ic / g->groups, out_group = g->oc / g->groups;
    if (n->op == &adj_op_conv2d || n->op == &adj_op_depthwise_conv2d_native)
        return (relation){g, first, result, in[0], in[1], NULL, in_group, out_group};
    if (n->op == &adj_op_conv2d_backprop_input ||
        n->op == &adj_op_depthwise_conv2d_native_backprop_input)
        return (relation){g, result, second, NULL, in[0], in[1], in_group, out_group};
    return (relation){g, first, second, in[0], NULL, in[1], in_group, out_group};
}

/* The filter at a tap, of channel i of the group, to channel oc: it is [kh, kw, ic/groups, oc]. */
static const double *filter_at(const relation *r, int64_t tap, int64_t i, int64_t oc)
{
    return &r->w[(tap * r->in_group + i) * r->g->oc + oc];
}

/* The pixel of x that meets pixel o of y at a tap. */
static pixel met(const adj_conv_geom *g, pixel o, int64_t tap, int64_t channel)
{
    return (pixel){o.n, o.h * g->sh + tap / g->kw * g->dh - g->pt,
                   o.w * g->sw + tap % g->kw * g->dw - g->pl, channel};
}

/* Elements from one channel to the next. */
static int64_t step_of(adj_shape s, int64_t format)
{
    return format == ADJ_NCHW ? s.dim[2] * s.dim[3] : 1;
}

static double y_element(const relation *r, int64_t i, int padded)
{
    const adj_conv_geom *g = r->g;
    const pixel o = pixel_of(r->y_shape, g->format, i);
    const int64_t step = step_of(r->x_shape, g->format);
    double sum = 0;
    for (int64_t tap = 0; tap < g->kh * g->kw; tap++) {
        const pixel p = met(g, o, tap, o.c / r->out_group * r->in_group);
        const int meets = is_inside(g, p.h, p.w);
        const double *x = meets ? &r->x[at_pixel(r->x_shape, g->format, p)] : NULL;
        const double *w = filter_at(r, tap, 0, o.c);
        for (int64_t k = 0; (padded || meets) && k < r->in_group; k++)
            sum += (meets ? x[k * step] : 0) * w[k * g->oc];
    }
    return sum;
}

/* Returns the position in y that stands there at this stride; -1: it is around y or between its
 * elements. */
static int64_t place_in_y(int64_t at, int64_t stride, int64_t n)
{
    return at >= 0 && at % stride == 0 && at / stride < n ? at / stride : -1;
}

static double x_element(const relation *r, int64_t i, int padded)
{
    const adj_conv_geom *g = r->g;
    const pixel p = pixel_of(r->x_shape, g->format, i);
    const int64_t step = step_of(r->y_shape, g->format);
    double sum = 0;
    for (int64_t tap = 0; tap < g->kh * g->kw; tap++) {
        const pixel o = {p.n, place_in_y(p.h + g->pt - tap / g->kw * g->dh, g->sh, g->oh),
                         place_in_y(p.w + g->pl - tap % g->kw * g->dw, g->sw, g->ow),
                         p.c / r->in_group * r->out_group};
        const int meets = o.h >= 0 && o.w >= 0;
        const double *y = meets ? &r->y[at_pixel(r->y_shape, g->format, o)] : NULL;
        const double *w = filter_at(r, tap, p.c % r->in_group, o.c);
        for (int64_t k = 0; (padded || meets) && k < r->out_group; k++)
            sum += (meets ? y[k * step] : 0) * w[k];
    }
    return sum;
}

static double w_element(const relation *r, int64_t i, int padded)
{
    const adj_conv_geom *g = r->g;
    const int64_t oc = i % g->oc, pixels = g->oh * g->ow;
    const int64_t channel = oc / r->out_group * r->in_group + i / g->oc % r->in_group;
    double sum = 0;
    for (int64_t k = 0; k < r->y_shape.dim[0] * pixels; k++) {
        const pixel o = {k / pixels, k % pixels / g->ow, k % g->ow, oc};
        const pixel p = met(g, o, i / g->oc / r->in_group, channel);
        const int meets = is_inside(g, p.h, p.w);
        if (padded || meets)
            sum += (meets ? r->x[at_pixel(r->x_shape, g->format, p)] : 0) *
                   r->y[at_pixel(r->y_shape, g->format, o)];
    }
    return sum;
}

static double element(const adj_node *n, double *const in[], int64_t i, int padded)
{
    const relation r = relation_of(n, in);
    return r.y == NULL   ? y_element(&r, i, padded)
           : r.x == NULL ? x_element(&r, i, padded)
                         : w_element(&r, i, padded);
}

static double convolution(const adj_node *n, double *const in[], int64_t i)
{
    return element(n, in, i, 0);
}

double formula_padded_conv(const adj_node *n, double *const in[], int64_t i)
{
    return element(n, in, i, 1);
}

const formula conv_formulas[] = {
    {&adj_op_conv2d, .element = convolution},
    {&adj_op_conv2d_backprop_input, .element = convolution},
    {&adj_op_conv2d_backprop_filter, .element = convolution},
    {&adj_op_depthwise_conv2d_native, .element = convolution},
    {&adj_op_depthwise_conv2d_native_backprop_input, .element = convolution},
    {&adj_op_depthwise_conv2d_native_backprop_filter, .element = convolution},
    {.op = NULL},
};
