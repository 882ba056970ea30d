/* clip.c - min(max(x, min), max), as ONNX's Clip and PyTorch's clamp, and its gradient as an op: dy
 * where min <= x <= max, else 0. Like these it gives max everywhere where min is larger than max.
 *
 * x is compared with the bounds as they were given, not as its type rounds them: whether an element
 * is clipped is the same in every type, and only the result is rounded. */
#include <math.h>

#include "activation.h"

static adj_status check_bounds(const adj_node *n, const adj_clip_attrs *a)
{
    if (isnan(a->min) || isnan(a->max))
        return adj_fail(n->graph, ADJ_EARG,
                        "%s: min or max is wrong (got %g and %g, expected numbers or infinities)",
                        n->op->name, a->min, a->max);
    return ADJ_OK;
}

static adj_status infer(const adj_node *n, void *attrs, adj_type *out)
{
    adj_status status = check_bounds(n, attrs);
    return status == ADJ_OK ? activation_infer(n, attrs, out) : status;
}

static adj_status grad_infer(const adj_node *n, void *attrs, adj_type *out)
{
    adj_status status = check_bounds(n, attrs);
    return status == ADJ_OK ? activation_grad_infer(n, attrs, out) : status;
}

static void rule(adj_node *y, adj_node *dy, adj_node *dx[])
{
    const adj_clip_attrs *a = y->attrs;
    dx[0] = adj_clip_grad(dy, y->in[0], a->min, a->max);
}

static void grad_rule(adj_node *dx, adj_node *e, adj_node *de[])
{
    const adj_clip_attrs *a = dx->attrs;
    de[0] = adj_clip_grad(e, dx->in[1], a->min, a->max);
    de[1] = NULL;
}

static void show(const void *attrs, FILE *f)
{
    const adj_clip_attrs *a = attrs;
    fprintf(f, " min=%g max=%g", a->min, a->max);
}

/* On both sides of each bound, unless it is far away. */
static void domain(const adj_node *n, int i, int64_t count, double v[])
{
    const adj_clip_attrs *a = n->attrs;
    if (i == n->n_in - 1)
        adj_spread(count, v, fmin(fmax(a->min, -8), 8) - 1, fmin(fmax(a->max, -8), 8) + 1);
}

const adj_op adj_op_clip = {
    .name = "clip",
    .min_in = 1,
    .max_in = 1,
    .attr_size = sizeof(adj_clip_attrs),
    .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_KINKS | ADJ_OP_HALF | ADJ_OP_CHEAP,
    .infer = infer,
    .grad = rule,
    .show = show,
    .domain = domain,
};

const adj_op adj_op_clip_grad = {
    .name = "clip_grad",
    .min_in = 2,
    .max_in = 2,
    .attr_size = sizeof(adj_clip_attrs),
    .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_KINKS | ADJ_OP_HALF,
    .linear_in = 1,
    .infer = grad_infer,
    .grad = grad_rule,
    .show = show,
    .operand = {"dy", "x"},
    .domain = domain,
};

adj_node *adj_clip(adj_node *x, double min, double max)
{
    return adj_node_new1(&adj_op_clip, x, &(adj_clip_attrs){min, max});
}

adj_node *adj_clip_grad(adj_node *dy, adj_node *x, double min, double max)
{
    return adj_node_new2(&adj_op_clip_grad, dy, x, &(adj_clip_attrs){min, max});
}
