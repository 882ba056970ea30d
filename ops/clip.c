/* clip.c - min(max(x, min), max), as ONNX's Clip and PyTorch's clamp, and its gradient as an op:
 * dy where min <= x <= max, else 0. Like these it gives max everywhere if min is larger than
 * max.
 *
 * x is compared with the given bounds, not with the bounds rounded to x's type: every type clips
 * the same elements, and only the result is rounded. */
#include <math.h>

#include "activation.h"
#include "grad.h"

static const char any[] = "a number or an infinity";

static const adj_schema schema = {
    .size = sizeof(adj_clip_attrs),
    .attr = {{"min", ADJ_ATTR_REAL, .offset = offsetof(adj_clip_attrs, min), " min=", any,
              -INFINITY, INFINITY, .fallback = -0.5},
             {"max", ADJ_ATTR_REAL, .offset = offsetof(adj_clip_attrs, max), " max=", any,
              -INFINITY, INFINITY, .fallback = 0.75}}};

static void rule(adj_node *y, adj_node *dy, adj_node *dx[])
{
    const adj_clip_attrs *a = y->attrs;
    dx[0] = adj_clip_grad(dy, y->in[0], a->min, a->max);
}

/* Draws values on both sides of each bound, unless the bound is far from 0. */
static void domain(const adj_node *n, int i, int64_t count, double v[])
{
    const adj_clip_attrs *a = n->attrs;
    if (i == n->n_in - 1)
        adj_spread(count, v, fmin(fmax(a->min, -8), 8) - 1, fmin(fmax(a->max, -8), 8) + 1);
}

const adj_op adj_op_clip = {.name = "clip",
                            .n_in = 1,
                            .schema = &schema,
                            .flags = STRAIGHT | ADJ_OP_CHEAP,
                            .grad = rule,
                            .domain = domain};
const adj_op adj_op_clip_grad = {.name = "clip_grad",
                                 .n_in = 2,
                                 .schema = &schema,
                                 .flags = STRAIGHT,
                                 .linear_in = ADJ_IN(0),
                                 .grad = steps_grad,
                                 .operand = {"dy", "x"},
                                 .domain = domain};

adj_node *adj_clip(adj_node *x, double min, double max)
{
    return adj_node_new1(&adj_op_clip, x, &(adj_clip_attrs){min, max});
}

adj_node *adj_clip_grad(adj_node *dy, adj_node *x, double min, double max)
{
    return adj_node_new2(&adj_op_clip_grad, dy, x, &(adj_clip_attrs){min, max});
}
