/* formula_image.c - ops on images by their definitions in float64, as adjoint_ops.h has them:
 * resize and pooling, with what goes back through them. See formula.h. */
#include <math.h>

#include "formula_image.h"

/* ---- resize ---- */

/* Output o reads input `at` with weight 1 - next, and the one after it with weight next. */
typedef struct {
    int64_t at;
    double next;
} reading;

static reading reading_of(const adj_resize_attrs *a, int64_t in, int64_t out, int64_t o)
{
    const double tie = 1e-9; /* of two nearest the later one, whatever the division rounds */
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

/* ---- maximum pooling ---- */

/* The first maximum, in row-major order, of output o's window of x. *where: its place there. */
static int64_t first_maximum(const adj_node *n, adj_shape y, const double *x, int64_t o,
                             int64_t *where)
{
    const adj_pool_attrs *a = n->attrs;
    const adj_conv_geom *g = &a->geom;
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
    for (int64_t o = 0; o < node_elems(n); o++)
        y[o] = in[n->n_in - 1][first_maximum(n, n->type.shape, in[0], o, &where)];
}

static void max_pool_argmax(const adj_node *n, double *const in[], double *y)
{
    int64_t where = -1;
    for (int64_t o = 0; o < node_elems(n); o++) {
        first_maximum(n, n->type.shape, in[0], o, &where);
        y[o] = (double)where;
    }
}

static void max_pool_grad(const adj_node *n, double *const in[], double *dx)
{
    const adj_shape y = n->in[2]->type.shape;
    int64_t where;
    for (int64_t o = 0; o < adj_shape_elems(y); o++)
        dx[first_maximum(n, y, in[0], o, &where)] += in[2][o];
}

/* A place outside the window or the image, which no maximum has, gets nothing. */
static void max_pool_grad_argmax(const adj_node *n, double *const in[], double *dx)
{
    const adj_pool_attrs *a = n->attrs;
    const adj_conv_geom *g = &a->geom;
    for (int64_t o = 0; o < node_elems(n->in[0]); o++) {
        const pixel p = pixel_of(n->in[0]->type.shape, g->format, o);
        const int64_t where = (int64_t)in[0][o], tap = where / a->kc;
        const pixel at = {p.n, p.h * g->sh - g->pt + tap / g->kw, p.w * g->sw - g->pl + tap % g->kw,
                          p.c * a->kc + where % a->kc};
        if (where >= 0 && tap < g->kh * g->kw && is_inside(g, at.h, at.w))
            dx[at_pixel(n->type.shape, g->format, at)] += in[1][o];
    }
}

/* ---- average pooling ---- */

/* Over all windows: what their output's element and each valid element of theirs have in common,
 * shared by the number of these. */
static void avg_pool(const adj_node *n, double *const in[], double *to)
{
    const int is_grad = n->op == &adj_op_avg_pool_grad;
    const adj_shape first = n->in[0]->type.shape, x = is_grad ? n->type.shape : first,
                    y = is_grad ? first : n->type.shape;
    const adj_conv_geom *g = adj_node_geom(n);
    for (int64_t o = 0; o < adj_shape_elems(y); o++) {
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
    {.op = NULL},
};
