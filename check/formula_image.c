/* formula_image.c - ops on images by their definitions in float64, as adjoint_ops.h has them:
 * convolutions, resize and pooling, and their gradients. See formula.h. */
#include <math.h>

#include "formula.h"

/* ---- geometry, derived from attributes and shapes: the node's own is under test ---- */

/* Returns the number of windows along an axis, and the padding before the first, as TensorFlow
 * defines them: for SAME a window for each stride that begins in the image, else every window that
 * lies in the padded image. Requires: sizes that the op accepts. */
static int64_t windows_along(int64_t in, int64_t k, int64_t stride, int64_t dilation,
                             adj_padding padding, const int64_t pad[2], int64_t *before)
{
    const int64_t reach = (k - 1) * dilation + 1;
    if (padding == ADJ_SAME) {
        const int64_t out = in / stride + (in % stride > 0);
        const int64_t missing = out > 0 ? (out - 1) * stride + reach - in : 0;
        *before = missing > 0 ? missing / 2 : 0;
        return out;
    }
    const int is_explicit = padding == ADJ_EXPLICIT;
    *before = is_explicit ? pad[0] : 0;
    const int64_t left = in + *before + (is_explicit ? pad[1] : 0) - reach;
    return left < 0 ? 0 : left / stride + 1;
}

/* Attributes of a convolution or pool. */
typedef struct {
    adj_padding padding;
    adj_format format;
    const int64_t *stride, *dilation, (*pad)[2];
} window_attrs;

/* Sets the geometry from the shapes of image and result and the window's sides. Returns 0 if the
 * result has another size. */
static int derive(const window_attrs *a, adj_shape x, adj_shape y, int64_t kh, int64_t kw,
                  int64_t in_group, adj_conv_geom *g)
{
    const int h = a->format == ADJ_NCHW ? 2 : 1, w = h + 1, c = a->format == ADJ_NCHW ? 1 : 3;
    *g = (adj_conv_geom){.n = x.dim[0],
                         .ih = x.dim[h],
                         .iw = x.dim[w],
                         .ic = x.dim[c],
                         .oc = y.dim[c],
                         .kh = kh,
                         .kw = kw,
                         .sh = a->stride[h],
                         .sw = a->stride[w],
                         .dh = a->dilation[h],
                         .dw = a->dilation[w],
                         .groups = in_group > 0 ? x.dim[c] / in_group : 1,
                         .format = a->format};
    g->oh = windows_along(g->ih, kh, g->sh, g->dh, a->padding, a->pad[h], &g->pt);
    g->ow = windows_along(g->iw, kw, g->sw, g->dw, a->padding, a->pad[w], &g->pl);
    const int has_channels =
        in_group == 0 || (g->groups > 0 && g->groups * in_group == g->ic && g->oc % g->groups == 0);
    return has_channels && x.dim[0] == y.dim[0] && g->oh == y.dim[h] && g->ow == y.dim[w];
}

/* ---- pixels of images ---- */

typedef struct {
    int64_t n, h, w, c;
} pixel;

static int64_t at_pixel(adj_shape s, int64_t format, pixel p)
{
    return format == ADJ_NCHW ? ((p.n * s.dim[1] + p.c) * s.dim[2] + p.h) * s.dim[3] + p.w
                              : ((p.n * s.dim[1] + p.h) * s.dim[2] + p.w) * s.dim[3] + p.c;
}

static pixel pixel_of(adj_shape s, int64_t format, int64_t i)
{
    const int64_t *d = s.dim;
    if (format == ADJ_NCHW)
        return (pixel){i / d[3] / d[2] / d[1], i / d[3] % d[2], i % d[3], i / d[3] / d[2] % d[1]};
    return (pixel){i / d[3] / d[2] / d[1], i / d[3] / d[2] % d[1], i / d[3] % d[2], i % d[3]};
}

/* True if h, w is in the geometry's input, not in its padding. */
static int is_inside(const adj_conv_geom *g, int64_t h, int64_t w)
{
    return h >= 0 && w >= 0 && h < g->ih && w < g->iw;
}

/* ---- convolutions ---- */

/* One definition for six ops: y += x w for each output pixel, channel and tap. Two of x, w, y are
 * given; each element of the third is the sum of its products, as tf.nn.conv2d defines them.
 * Padding counts as zeros, which matters only next to NaN or infinity. */

/* Values of a convolution, or their gradients; the one that is computed is NULL. */
typedef struct {
    adj_conv_geom geom;
    int has_size; /* 0: y has another size than attributes and shapes give */
    adj_shape x_shape, y_shape;
    const double *x, *w, *y;
    int64_t in_group, out_group; /* channels */
} relation;

/* The convolution of n, whose result is y, x or w. */
static relation relation_of(const adj_node *n, double *const in[])
{
    const adj_conv *a = &((const adj_conv_attrs *)n->attrs)->conv;
    const window_attrs attrs = {a->padding, a->format, a->stride, a->dilation, a->pad};
    const int is_y = n->op == &adj_op_conv2d || n->op == &adj_op_depthwise_conv2d_native;
    const int is_x = n->op == &adj_op_conv2d_backprop_input ||
                     n->op == &adj_op_depthwise_conv2d_native_backprop_input;
    const int is_depthwise = n->op == &adj_op_depthwise_conv2d_native ||
                             n->op == &adj_op_depthwise_conv2d_native_backprop_input ||
                             n->op == &adj_op_depthwise_conv2d_native_backprop_filter;
    const adj_shape result = n->type.shape, first = n->in[0]->type.shape,
                    second = n->in[1]->type.shape;
    const adj_shape w = is_y ? second : is_x ? first : result;
    relation r = {.x_shape = is_x ? result : first, .y_shape = is_y ? result : second};
    r.x = is_x ? NULL : in[0];
    r.w = is_y ? in[1] : is_x ? in[0] : NULL;
    r.y = is_y ? NULL : in[1];
    r.in_group = is_depthwise ? 1 : w.dim[2];
    r.has_size = derive(&attrs, r.x_shape, r.y_shape, w.dim[0], w.dim[1], r.in_group, &r.geom);
    r.out_group = r.has_size ? r.geom.oc / r.geom.groups : 1;
    return r;
}

/* The filter at a tap, of channel i of the group, to channel oc: it is [kh, kw, ic/groups, oc]. */
static const double *filter_at(const relation *r, int64_t tap, int64_t i, int64_t oc)
{
    return &r->w[(tap * r->in_group + i) * r->geom.oc + oc];
}

/* Returns the pixel of x that output pixel o reads at a tap. */
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
    const adj_conv_geom *g = &r->geom;
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

/* Returns the position in y for a strided position; -1: in the padding or between outputs. */
static int64_t place_in_y(int64_t at, int64_t stride, int64_t n)
{
    return at >= 0 && at % stride == 0 && at / stride < n ? at / stride : -1;
}

static double x_element(const relation *r, int64_t i, int padded)
{
    const adj_conv_geom *g = &r->geom;
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
    const adj_conv_geom *g = &r->geom;
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

static double conv_element(const adj_node *n, double *const in[], int64_t i, int padded)
{
    const relation r = relation_of(n, in);
    if (!r.has_size)
        return NAN;
    return r.y == NULL   ? y_element(&r, i, padded)
           : r.x == NULL ? x_element(&r, i, padded)
                         : w_element(&r, i, padded);
}

static double convolution(const adj_node *n, double *const in[], int64_t i)
{
    return conv_element(n, in, i, 0);
}

double formula_padded_conv(const adj_node *n, double *const in[], int64_t i)
{
    return conv_element(n, in, i, 1);
}

/* ---- resize ---- */

/* Output o reads input `at` with weight 1 - next, and the one after it with weight next. */
typedef struct {
    int64_t at;
    double next;
} reading;

static reading reading_of(const adj_resize_attrs *a, int64_t in, int64_t out, int64_t o)
{
    const double tie = 1e-9; /* the later of two nearest, however the division rounds */
    double p = (double)o * (double)in / (double)out;
    if (a->coordinates == ADJ_HALF_PIXEL)
        p = ((double)o + 0.5) * (double)in / (double)out - 0.5;
    else if (a->coordinates == ADJ_ALIGN_CORNERS)
        p = out > 1 ? (double)(o * (in - 1)) / (double)(out - 1) : 0;
    p = fmax(p, 0);
    if (a->mode == ADJ_NEAREST)
        return (reading){(int64_t)floor(p + (a->coordinates == ADJ_ASYMMETRIC ? 0 : 0.5) + tie), 0};
    const reading r = {(int64_t)floor(p + tie), fmax(0, p - floor(p + tie))};
    return r.at + 1 < in ? r : (reading){r.at, 0};
}

/* Over all outputs: to[output] += weight in[input], or for the gradient to[input] += weight
 * in[output]. */
static void resize(const adj_node *n, double *const in[], double *to)
{
    const int is_grad = n->op == &adj_op_resize_grad;
    const adj_shape first = n->in[0]->type.shape, x = is_grad ? n->type.shape : first,
                    y = is_grad ? first : n->type.shape;
    const adj_resize_attrs *a = n->attrs;
    for (int64_t o = 0; o < adj_shape_elems(y); o++) {
        const pixel p = pixel_of(y, a->format, o);
        const reading h = reading_of(a, a->ih, a->oh, p.h), w = reading_of(a, a->iw, a->ow, p.w);
        for (int corner = 0; corner < 4; corner++) {
            const int down = corner / 2, right = corner % 2;
            const double weight = (down ? h.next : 1 - h.next) * (right ? w.next : 1 - w.next);
            if (weight == 0)
                continue;
            const int64_t i = at_pixel(x, a->format, (pixel){p.n, h.at + down, w.at + right, p.c});
            to[is_grad ? i : o] += weight * in[0][is_grad ? o : i];
        }
    }
}

/* ---- pools ---- */

/* Sets the geometry of a pool from x to y. Returns 0 if y has another size. */
static int derive_pool(const adj_node *n, adj_shape x, adj_shape y, adj_conv_geom *g)
{
    static const int64_t ones[4] = {1, 1, 1, 1};
    const adj_pool *a = &((const adj_pool_attrs *)n->attrs)->pool;
    const window_attrs attrs = {a->padding, a->format, a->stride, ones, a->pad};
    const int h = a->format == ADJ_NCHW ? 2 : 1;
    return derive(&attrs, x, y, a->ksize[h], a->ksize[h + 1], 0, g);
}

/* ---- maximum pooling ---- */

/* Returns the first maximum, row-major, of output o's window; *where: its place in the window. */
static int64_t first_maximum(const adj_node *n, const adj_conv_geom *g, adj_shape y,
                             const double *x, int64_t o, int64_t *where)
{
    const adj_pool_attrs *a = n->attrs;
    const pixel p = pixel_of(y, g->format, o);
    int64_t best = -1, at = -1;
    for (int64_t h = p.h * g->sh - g->pt; h < p.h * g->sh - g->pt + g->kh; h++)
        for (int64_t w = p.w * g->sw - g->pl; w < p.w * g->sw - g->pl + g->kw; w++)
            for (int64_t c = p.c * a->kc; c < (p.c + 1) * a->kc; c++) {
                at++;
                if (!is_inside(g, h, w))
                    continue;
                const int64_t i = at_pixel(n->in[0]->type.shape, g->format, (pixel){p.n, h, w, c});
                if (best >= 0 && !(x[i] > x[best]) && !(isnan(x[i]) && !isnan(x[best])))
                    continue;
                best = i;
                *where = at;
            }
    return best;
}

static void max_pool(const adj_node *n, double *const in[], double *y)
{
    int64_t where;
    adj_conv_geom g;
    const int has_size =
        derive_pool(n, n->in[0]->type.shape, n->type.shape, &g) || formula_no_value(n, y);
    for (int64_t o = 0; has_size && o < node_elems(n); o++)
        y[o] = in[n->n_in - 1][first_maximum(n, &g, n->type.shape, in[0], o, &where)];
}

static void max_pool_argmax(const adj_node *n, double *const in[], double *y)
{
    int64_t where = -1;
    adj_conv_geom g;
    const int has_size =
        derive_pool(n, n->in[0]->type.shape, n->type.shape, &g) || formula_no_value(n, y);
    for (int64_t o = 0; has_size && o < node_elems(n); o++) {
        first_maximum(n, &g, n->type.shape, in[0], o, &where);
        y[o] = (double)where;
    }
}

static void max_pool_grad(const adj_node *n, double *const in[], double *dx)
{
    const adj_shape y = n->in[2]->type.shape;
    int64_t where;
    adj_conv_geom g;
    const int has_size = derive_pool(n, n->type.shape, y, &g) || formula_no_value(n, dx);
    for (int64_t o = 0; has_size && o < adj_shape_elems(y); o++)
        dx[first_maximum(n, &g, y, in[0], o, &where)] += in[2][o];
}

/* A place outside the window or the image, which no maximum has, gets nothing. */
static void max_pool_grad_argmax(const adj_node *n, double *const in[], double *dx)
{
    const adj_pool_attrs *a = n->attrs;
    const adj_shape y = n->in[0]->type.shape;
    adj_conv_geom g;
    const int has_size = derive_pool(n, n->type.shape, y, &g) || formula_no_value(n, dx);
    for (int64_t o = 0; has_size && o < adj_shape_elems(y); o++) {
        const pixel p = pixel_of(y, g.format, o);
        const int64_t where = (int64_t)in[0][o], tap = where / a->kc;
        const pixel at = {p.n, p.h * g.sh - g.pt + tap / g.kw, p.w * g.sw - g.pl + tap % g.kw,
                          p.c * a->kc + where % a->kc};
        if (where >= 0 && tap < g.kh * g.kw && is_inside(&g, at.h, at.w))
            dx[at_pixel(n->type.shape, g.format, at)] += in[1][o];
    }
}

/* ---- average pooling ---- */

/* For each window, adds between its output and each valid element, divided by their number. */
static void avg_pool(const adj_node *n, double *const in[], double *to)
{
    const int is_grad = n->op == &adj_op_avg_pool_grad;
    const adj_shape first = n->in[0]->type.shape, x = is_grad ? n->type.shape : first,
                    y = is_grad ? first : n->type.shape;
    adj_conv_geom derived, *g = &derived;
    const int has_size = derive_pool(n, x, y, g) || formula_no_value(n, to);
    for (int64_t o = 0; has_size && o < adj_shape_elems(y); o++) {
        const pixel p = pixel_of(y, g->format, o);
        const int64_t top = p.h * g->sh - g->pt, left = p.w * g->sw - g->pl;
        double valid = 0;
        for (int64_t k = 0; k < g->kh * g->kw; k++)
            valid += is_inside(g, top + k / g->kw, left + k % g->kw);
        for (int64_t k = 0; k < g->kh * g->kw; k++) {
            const pixel at = {p.n, top + k / g->kw, left + k % g->kw, p.c};
            if (!is_inside(g, at.h, at.w))
                continue;
            const int64_t i = at_pixel(x, g->format, at);
            to[is_grad ? i : o] += in[0][is_grad ? o : i] / valid;
        }
    }
}

/* max_pool of x, or of e where x has its maxima. */
const formula image_formulas[] = {
    {&adj_op_resize, .whole = resize},
    {&adj_op_resize_grad, .whole = resize},
    {&adj_op_max_pool, .whole = max_pool},
    {&adj_op_max_pool_grad_grad, .whole = max_pool},
    {&adj_op_max_pool_grad, .whole = max_pool_grad},
    {&adj_op_max_pool_argmax, .whole = max_pool_argmax},
    {&adj_op_max_pool_grad_argmax, .whole = max_pool_grad_argmax},
    {&adj_op_avg_pool, .whole = avg_pool},
    {&adj_op_avg_pool_grad, .whole = avg_pool},
    {&adj_op_conv2d, .element = convolution},
    {&adj_op_conv2d_backprop_input, .element = convolution},
    {&adj_op_conv2d_backprop_filter, .element = convolution},
    {&adj_op_depthwise_conv2d_native, .element = convolution},
    {&adj_op_depthwise_conv2d_native_backprop_input, .element = convolution},
    {&adj_op_depthwise_conv2d_native_backprop_filter, .element = convolution},
    {.op = NULL},
};
