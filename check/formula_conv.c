/* formula_conv.c - the six convolutions by their one definition in float64: for each pixel and
 * channel of y and each tap of the filter, y += x w. Two of the three are known, the third is the
 * sum of the products; TensorFlow's tf.nn.conv2d has it for VALID, geometry for the rest. See
 * formula.h.
 *
 * With padding, what stands around x counts as zeros in these sums, and in the gradient of x what
 * stands around and between y. That is the same, but where a zero meets a NaN or an infinity. */
#include "formula_image.h"

/* Values of a convolution, or their gradients. */
typedef struct {
    const adj_conv_geom *geom;
    adj_shape x_shape, y_shape;
    double *x, *w, *y;
    double *sum; /* the one of the three that is computed */
    int padded;
} relation;

/* The filter's element for channel i of the group and oc: it is [kh, kw, ic/groups, oc]. */
static double *filter_at(const relation *r, int64_t kh, int64_t kw, int64_t i, int64_t oc)
{
    const adj_conv_geom *g = r->geom;
    return &r->w[((kh * g->kw + kw) * (g->ic / g->groups) + i) * g->oc + oc];
}

/* One pixel of y and one tap. */
static void add_products(const relation *r, int64_t o, int64_t kh, int64_t kw)
{
    const adj_conv_geom *g = r->geom;
    const pixel p = pixel_of(r->y_shape, g->format, o);
    const int64_t h = p.h * g->sh + kh * g->dh - g->pt, w = p.w * g->sw + kw * g->dw - g->pl;
    const int64_t in_group = g->ic / g->groups, first = p.c / (g->oc / g->groups) * in_group;
    const int inside = is_inside(g, h, w);
    if (!inside && (!r->padded || r->sum == r->x))
        return;
    for (int64_t i = 0; i < in_group; i++) {
        double zero = 0;
        double *x =
            inside ? &r->x[at_pixel(r->x_shape, g->format, (pixel){p.n, h, w, first + i})] : &zero;
        double *f = filter_at(r, kh, kw, i, p.c);
        if (r->sum == r->y)
            r->y[o] += *x * *f;
        else if (r->sum == r->x)
            *x += r->y[o] * *f;
        else
            *f += r->y[o] * *x;
    }
}

/* Returns the position in y that stands there at this stride; -1: it is around y or between its
 * elements. */
static int64_t place_in_y(int64_t at, int64_t stride, int64_t n)
{
    return at >= 0 && at % stride == 0 && at / stride < n ? at / stride : -1;
}

/* Adds zeros times the filter where no element of y meets x's element i. */
static void add_padding_of_y(const relation *r, int64_t i)
{
    const adj_conv_geom *g = r->geom;
    const int64_t in_group = g->ic / g->groups, out_group = g->oc / g->groups;
    const pixel p = pixel_of(r->x_shape, g->format, i);
    for (int64_t kh = 0; kh < g->kh; kh++)
        for (int64_t kw = 0; kw < g->kw; kw++) {
            if (place_in_y(p.h + g->pt - kh * g->dh, g->sh, g->oh) >= 0 &&
                place_in_y(p.w + g->pl - kw * g->dw, g->sw, g->ow) >= 0)
                continue;
            for (int64_t k = 0; k < out_group; k++)
                r->x[i] +=
                    0 * *filter_at(r, kh, kw, p.c % in_group, p.c / in_group * out_group + k);
        }
}

static void sum_products(const relation *r, int64_t elems)
{
    for (int64_t i = 0; i < elems; i++)
        r->sum[i] = 0;
    for (int64_t o = 0; o < adj_shape_elems(r->y_shape); o++)
        for (int64_t kh = 0; kh < r->geom->kh; kh++)
            for (int64_t kw = 0; kw < r->geom->kw; kw++)
                add_products(r, o, kh, kw);
    for (int64_t i = 0; i < elems && r->padded && r->sum == r->x; i++)
        add_padding_of_y(r, i);
}

/* The convolution of n, whose result is y, x or w. */
static relation relation_of(const adj_node *n, double *const in[], double *result)
{
    const adj_shape *shape = &n->type.shape, *first = &n->in[0]->type.shape,
                    *second = &n->in[1]->type.shape;
    const adj_conv_geom *g = adj_node_geom(n);
    if (n->op == &adj_op_conv2d || n->op == &adj_op_depthwise_conv2d_native)
        return (relation){g, *first, *shape, in[0], in[1], result, result, 0};
    if (n->op == &adj_op_conv2d_backprop_input ||
        n->op == &adj_op_depthwise_conv2d_native_backprop_input)
        return (relation){g, *shape, *second, result, in[0], in[1], result, 0};
    return (relation){g, *first, *second, in[0], result, in[1], result, 0};
}

static void convolution(const adj_node *n, double *const in[], double *result)
{
    const relation r = relation_of(n, in, result);
    sum_products(&r, node_elems(n));
}

const formula conv_formulas[] = {
    {&adj_op_conv2d, .whole = convolution},
    {&adj_op_conv2d_backprop_input, .whole = convolution},
    {&adj_op_conv2d_backprop_filter, .whole = convolution},
    {&adj_op_depthwise_conv2d_native, .whole = convolution},
    {&adj_op_depthwise_conv2d_native_backprop_input, .whole = convolution},
    {&adj_op_depthwise_conv2d_native_backprop_filter, .whole = convolution},
    {.op = NULL},
};

void formula_padded_conv(const adj_node *n, double *const in[], double *result)
{
    relation r = relation_of(n, in, result);
    r.padded = 1;
    sum_products(&r, node_elems(n));
}
