/* im2col.c - the kernel of im2col.h. */
#include <stdio.h>

#include "im2col.h"

static const double parallel_above = 2e5; /* operations */

static int is_ours(const adj_group *g)
{
    const adj_node *n = g->node[0];
    int is_conv = n->op == &adj_op_conv2d_backprop_input || n->op == &adj_op_conv2d_backprop_filter;
    return g->n_node == 1 && is_conv &&
           (n->type.dtype == ADJ_F32 || n->type.dtype == ADJ_BF16 || n->type.dtype == ADJ_F64);
}

static int plan(im2col *d, const direct *backend, const adj_group *g, size_t *scratch)
{
    const adj_node *n = g->node[0];
    const adj_conv_geom *geom = &((const adj_conv_attrs *)n->attrs)->geom;
    double work = 2.0 * (double)geom->n * (double)geom->oh * (double)geom->ow * (double)geom->oc *
                  (double)geom->kh * (double)geom->kw * (double)geom->ic;
    *d = (im2col){
        .g = *geom, .dtype = n->type.dtype, .is_dw = n->op == &adj_op_conv2d_backprop_filter};
    d->dy_in = direct_in(g, n->in[1]);
    d->other_in = direct_in(g, n->in[0]);
    d->threads = work > parallel_above ? backend->threads : 1;
    d->code = backend->isa->im2col[d->dtype == ADJ_F64][d->is_dw];
    return im2col_plan(d, scratch);
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *prep)
{
    direct *b = backend;
    if (!is_ours(g))
        return ADJ_ENOKERNEL;
    im2col *d = candidate == 0 ? adj_alloc(&b->allocator, sizeof *d) : NULL;
    if (d == NULL)
        return candidate == 0 ? ADJ_ENOMEM : ADJ_ENOKERNEL;
    if (!plan(d, b, g, &prep->scratch)) {
        adj_release(&b->allocator, d);
        snprintf(prep->why, ADJ_WHY,
                 "%s: direct takes NHWC, up to %d input channels, kernels up to %dx%d, strides up "
                 "to %d, no groups, no dilation",
                 g->node[0]->op->name, IM2COL_CHANNELS, IM2COL_K, IM2COL_K, IM2COL_STRIDE);
        return ADJ_ENOKERNEL;
    }
    prep->state = d;
    snprintf(prep->impl, sizeof prep->impl, "im2col:%s", b->isa->name);
    return ADJ_OK;
}

static adj_status run(const adj_call *c)
{
    const im2col *d = c->state;
    direct_run(&d->code->jobs, c, d->jobs, d->threads);
    return ADJ_OK;
}

const adj_kernel direct_im2col = {
    .name = "im2col", .prepare = prepare, .run = run, .drop = direct_drop};
