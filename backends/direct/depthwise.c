/* depthwise.c - the kernel of depthwise.h: candidates are rows prepared and rows read in place, the
 * one that is likely to be faster first. */
#include <stdio.h>

#include "depthwise.h"

static const double parallel_above = 2e5; /* operations */

static int is_forward(const adj_node *n) { return n->op == &adj_op_depthwise_conv2d_native; }

static int is_dx(const adj_node *n)
{
    return n->op == &adj_op_depthwise_conv2d_native_backprop_input;
}

static int is_dw(const adj_node *n)
{
    return n->op == &adj_op_depthwise_conv2d_native_backprop_filter;
}

static int is_ours(const adj_group *g)
{
    const adj_node *n = g->node[0];
    return g->n_node == 1 && (is_forward(n) || is_dx(n) || is_dw(n)) &&
           (n->type.dtype == ADJ_F32 || n->type.dtype == ADJ_BF16 || n->type.dtype == ADJ_F64);
}

/* Rows that are read by few windows are not worth preparing; nor are those of filter gradients,
 * where several rows in place share the loads of their sums, unless they come from far. */
static int is_better_in_place(const depthwise *d)
{
    if (d->g.sw > 1 && !d->is_dx)
        return 1;
    if (d->is_dw)
        return !depthwise_is_beyond(d, (ptrdiff_t)4 << 20);
    return d->g.kh * d->g.kw <= 9 && d->lanes >= 64 && d->lanes <= 256;
}

static int plan(depthwise *d, const direct *backend, const adj_group *g, int candidate,
                size_t *scratch)
{
    const adj_node *n = g->node[0];
    const adj_conv_geom *geom = &((const adj_conv_attrs *)n->attrs)->geom;
    double work = 2.0 * (double)geom->n * (double)geom->oh * (double)geom->ow * (double)geom->oc *
                  (double)geom->kh * (double)geom->kw;
    *d = (depthwise){.g = *geom, .dtype = n->type.dtype, .is_dx = is_dx(n), .is_dw = is_dw(n)};
    d->from_in = direct_in(g, n->in[d->is_dx ? 1 : 0]);
    d->other_in = direct_in(g, n->in[d->is_dx ? 0 : 1]);
    d->threads = work > parallel_above ? backend->threads : 1;
    d->code = d->dtype == ADJ_F64 ? (d->is_dw ? backend->isa->depthwise_filter_f64
                                              : backend->isa->depthwise_image_f64)
              : d->is_dw          ? backend->isa->depthwise_filter
                                  : backend->isa->depthwise_image;
    depthwise other = *d;
    other.in_place = 1;
    size_t other_scratch = 0;
    int has_prepared = depthwise_plan(d, scratch);
    int has_other = depthwise_plan(&other, &other_scratch);
    int wants_other = candidate ^ (has_other && (!has_prepared || is_better_in_place(&other)));
    if (candidate >= has_prepared + has_other)
        return 0;
    if (wants_other) {
        *d = other;
        *scratch = other_scratch;
    }
    return 1;
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *prep)
{
    direct *b = backend;
    if (!is_ours(g))
        return ADJ_ENOKERNEL;
    depthwise *d = adj_alloc(&b->allocator, sizeof *d);
    if (d == NULL)
        return ADJ_ENOMEM;
    if (!plan(d, b, g, candidate, &prep->scratch)) {
        adj_release(&b->allocator, d);
        snprintf(prep->why, ADJ_WHY, "%s: direct takes NHWC, kernels up to %dx%d, strides up to %d",
                 g->node[0]->op->name, DEPTHWISE_K, DEPTHWISE_K, DEPTHWISE_STRIDE);
        return ADJ_ENOKERNEL;
    }
    prep->state = d;
    snprintf(prep->impl, sizeof prep->impl, "depthwise_%s:%s", d->in_place ? "in_place" : "rows",
             b->isa->name);
    return ADJ_OK;
}

static adj_status run(const adj_call *c)
{
    const depthwise *d = c->state;
    direct_run(d->code, c, d->jobs, d->threads);
    return ADJ_OK;
}

const adj_kernel direct_depthwise = {
    .name = "depthwise", .prepare = prepare, .run = run, .drop = direct_drop};
