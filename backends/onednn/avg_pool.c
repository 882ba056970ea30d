/* avg_pool.c - avg_pool and its gradient, over the valid elements of each window. */
#include <stdio.h>

#include "onednn.h"

typedef struct {
    onednn *o;
    const adj_node *node;
    const adj_conv_geom *geom;
    int backward;
    md x, y;              /* x and y, or their gradients */
    pd forward, gradient; /* a gradient is created with the forward one as a hint */
} pool;

static dnnl_status_t describe(pool *c)
{
    const adj_conv_geom *g = c->geom;
    const int64_t x[] = {g->n, g->ic, g->ih, g->iw}, y[] = {g->n, g->oc, g->oh, g->ow};
    const int64_t x_nhwc[] = {g->ic * g->ih * g->iw, 1, g->iw * g->ic, g->ic};
    const int64_t y_nhwc[] = {g->oc * g->oh * g->ow, 1, g->ow * g->oc, g->oc};
    dnnl_data_type_t type = onednn_type(c->node->type.dtype);
    dnnl_status_t status = md_new(&c->o->allocator, &c->x, 4, x, type, x_nhwc);
    if (status == dnnl_success)
        status = md_new(&c->o->allocator, &c->y, 4, y, type, y_nhwc);
    return status;
}

static dnnl_status_t query(pool *c)
{
    const adj_conv_geom *g = c->geom;
    pd_query q = {c->o->engine, c->o->attr};
    pool_request r = {.kind = dnnl_pooling_avg_exclude_padding,
                      .x = c->x,
                      .y = c->y,
                      .stride = {g->sh, g->sw},
                      .window = {g->kh, g->kw},
                      .before = {g->pt, g->pl},
                      .after = {g->pb, g->pr}};
    dnnl_status_t status = pd_pool(&q, &r, &c->forward);
    if (status == dnnl_success && c->backward)
        status = pd_pool_backward(&q, &r, c->forward, &c->gradient);
    if (status == dnnl_success && is_reference(c->backward ? c->gradient : c->forward))
        status = dnnl_unimplemented;
    return status;
}

static void free_descriptors(pool *c)
{
    if (c->gradient != NULL)
        dnnl_primitive_desc_destroy(c->gradient);
    if (c->forward != NULL)
        dnnl_primitive_desc_destroy(c->forward);
    md_free(&c->o->allocator, c->y);
    md_free(&c->o->allocator, c->x);
}

static adj_status make_primitive(const pool *c, const_pd d, adj_prep *p)
{
    const implementation i = {.task = c->backward ? TASK_AVG_POOL_BACKWARD : TASK_AVG_POOL,
                              .geom = c->geom,
                              .dtype = c->node->type.dtype,
                              .name = pd_name(d),
                              .channels_last = 1};
    const char *reason = quarantined(c->o, &i);
    const primitive_arg forward[] = {
        {DNNL_ARG_SRC, AT_IN, 0, c->x}, {DNNL_ARG_DST, AT_OUT, 0, c->y}, {0}};
    const primitive_arg backward[] = {
        {DNNL_ARG_DIFF_DST, AT_IN, 0, c->y}, {DNNL_ARG_DIFF_SRC, AT_OUT, 0, c->x}, {0}};
    if (reason != NULL) {
        snprintf(p->why, ADJ_WHY, "%s: oneDNN's implementation is quarantined: %s",
                 c->node->op->name, reason);
        return ADJ_ENOKERNEL;
    }
    p->in[0] = p->out[0] = NULL;
    return primitive_prepare(c->o, c->node, d, c->backward ? backward : forward, p);
}

/* True if some element of x lies in several windows. */
static int has_overlap(const adj_conv_geom *g)
{
    return (g->kh > g->sh && g->oh > 1) || (g->kw > g->sw && g->ow > 1);
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    const adj_node *n = g->node[0];
    int backward = n->op == &adj_op_avg_pool_grad;
    if ((n->op != &adj_op_avg_pool && !backward) || g->n_node > 1 || candidate > 0)
        return ADJ_ENOKERNEL;
    const adj_pool_attrs *a = n->attrs;
    adj_status status = onednn_check_image(n, &a->geom, p->why);
    if (status != ADJ_OK)
        return status;
    if (a->kc != 1) {
        snprintf(p->why, ADJ_WHY, "%s: oneDNN has no window in depth", n->op->name);
        return ADJ_ENOKERNEL;
    }
    pool c = {.o = backend, .node = n, .geom = &a->geom, .backward = backward};
    dnnl_status_t found = describe(&c);
    if (found == dnnl_success)
        found = query(&c);
    status = found == dnnl_success ? make_primitive(&c, backward ? c.gradient : c.forward, p)
                                   : onednn_refuse(found, n->op->name, p->why);
    /* Rows are distributed to threads, and the order of sums over windows depends on the thread. */
    p->sums_by_threads = backward && has_overlap(c.geom);
    free_descriptors(&c);
    return status;
}

const adj_kernel onednn_avg_pool = {
    .name = "avg_pool", .prepare = prepare, .run = primitive_run, .drop = primitive_drop};
