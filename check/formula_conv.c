/* formula_conv.c - the six convolutions by their one definition in float64: for each pixel and
 * channel of y and each tap of the filter, y += x w. Two of the three are known, the third is the
 * sum of the products; TensorFlow's tf.nn.conv2d has it for VALID, geometry for the rest. See
 * formula.h. */
#include "formula_image.h"

/* Values of a convolution, or their gradients. */
typedef struct {
    const adj_conv_geom *geom;
    adj_shape x_shape, y_shape;
    double *x, *w, *y;
    double *sum; /* the one of the three that is computed */
} relation;

/* One pixel of y and one tap; the filter is [kh, kw, ic/groups, oc]. */
static void add_products(const relation *r, int64_t o, int64_t kh, int64_t kw)
{
    const adj_conv_geom *g = r->geom;
    const pixel p = pixel_of(r->y_shape, g->format, o);
    const int64_t h = p.h * g->sh + kh * g->dh - g->pt, w = p.w * g->sw + kw * g->dw - g->pl;
    const int64_t in_group = g->ic / g->groups, first = p.c / (g->oc / g->groups) * in_group;
    if (!is_inside(g, h, w))
        return;
    for (int64_t i = 0; i < in_group; i++) {
        double *x = &r->x[at_pixel(r->x_shape, g->format, (pixel){p.n, h, w, first + i})];
        double *f = &r->w[((kh * g->kw + kw) * in_group + i) * g->oc + p.c];
        if (r->sum == r->y)
            r->y[o] += *x * *f;
        else if (r->sum == r->x)
            *x += r->y[o] * *f;
        else
            *f += r->y[o] * *x;
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
}

static void convolution(const adj_node *n, double *const in[], double *y)
{
    const relation r = {adj_node_geom(n), n->in[0]->type.shape, n->type.shape, in[0], in[1], y, y};
    sum_products(&r, node_elems(n));
}

static void backprop_input(const adj_node *n, double *const in[], double *x)
{
    const relation r = {adj_node_geom(n), n->type.shape, n->in[1]->type.shape, x, in[0], in[1], x};
    sum_products(&r, node_elems(n));
}

static void backprop_filter(const adj_node *n, double *const in[], double *w)
{
    const relation r = {
        adj_node_geom(n), n->in[0]->type.shape, n->in[1]->type.shape, in[0], w, in[1], w};
    sum_products(&r, node_elems(n));
}

definition *conv_definition_of(const adj_op *op)
{
    if (op == &adj_op_conv2d || op == &adj_op_depthwise_conv2d_native)
        return convolution;
    if (op == &adj_op_conv2d_backprop_input || op == &adj_op_depthwise_conv2d_native_backprop_input)
        return backprop_input;
    return op == &adj_op_conv2d_backprop_filter ||
                   op == &adj_op_depthwise_conv2d_native_backprop_filter
               ? backprop_filter
               : NULL;
}
