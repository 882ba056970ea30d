/* im2col.c - the kernel of im2col.h. */
#include "im2col.h"

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
    *d = (im2col){
        .g = *geom, .dtype = n->type.dtype, .is_dw = n->op == &adj_op_conv2d_backprop_filter};
    d->dy_in = direct_in(g, n->in[1]);
    d->other_in = direct_in(g, n->in[0]);
    d->work.threads = direct_conv_threads(backend, n);
    const im2col_code *code = backend->isa->im2col[d->dtype == ADJ_F64][d->is_dw];
    d->work.code = &code->jobs;
    return im2col_plan(d, code->vector, scratch);
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *prep)
{
    const direct *b = backend;
    im2col d;
    if (!is_ours(g) || candidate > 0)
        return ADJ_ENOKERNEL;
    if (!plan(&d, b, g, &prep->scratch))
        return direct_refuse(
            prep,
            "%s: direct takes NHWC, up to %d input channels, kernels up to %dx%d, strides up "
            "to %d, no groups, no dilation",
            g->node[0]->op->name, IM2COL_CHANNELS, IM2COL_K, IM2COL_K, IM2COL_STRIDE);
    return direct_accept(b, prep, "im2col", &d, sizeof d);
}

const adj_kernel direct_im2col = {
    .name = "im2col", .prepare = prepare, .run = direct_run, .drop = direct_drop};
