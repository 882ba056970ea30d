/* pool.c - avg_pool and its gradient, over the valid elements of each window.
 *
 * Candidates: plain memory, then, for an NCHW graph, channels-last. */
#include <stdio.h>

#include "onednn.h"

typedef struct {
    onednn *o;
    const adj_group *group;
    const adj_conv_geom *geom;
    int backward;
    md plain[2], last[2]; /* of x and y, or their gradients */
} pool;

static dnnl_status_t describe(pool *c)
{
    const adj_conv_geom *g = c->geom;
    const int64_t dims[2][4] = {{g->n, g->ic, g->ih, g->iw}, {g->n, g->oc, g->oh, g->ow}};
    dnnl_data_type_t type = onednn_type(c->group->node[0]->type.dtype);
    dnnl_status_t status = dnnl_success;

    for (int i = 0; i < 2 && status == dnnl_success; i++) {
        int64_t ch = dims[i][1], h = dims[i][2], w = dims[i][3];
        const int64_t nhwc[] = {ch * h * w, 1, w * ch, ch}, nchw[] = {ch * h * w, h * w, w, 1};
        status = md_new(&c->o->allocator, &c->last[i], 4, dims[i], type, nhwc);
        if (status == dnnl_success)
            status = md_new(&c->o->allocator, &c->plain[i], 4, dims[i], type,
                            g->format == ADJ_NCHW ? nchw : nhwc);
    }
    return status;
}

static void forget(pool *c)
{
    for (int i = 0; i < 2; i++) {
        md_free(&c->o->allocator, c->plain[i]);
        md_free(&c->o->allocator, c->last[i]);
    }
}

/* forward is the result itself, or the hint that a gradient is made with. */
static dnnl_status_t query(const pool *c, const md *layouts, pd *forward, pd *gradient)
{
    const adj_conv_geom *g = c->geom;
    pd_query q = {c->o->engine, c->o->attr};
    pool_request r = {.kind = dnnl_pooling_avg_exclude_padding,
                      .x = layouts[0],
                      .y = layouts[1],
                      .stride = {g->sh, g->sw},
                      .window = {g->kh, g->kw},
                      .before = {g->pt, g->pl},
                      .after = {g->pb, g->pr}};
    dnnl_status_t status = pd_pool(&q, &r, forward);
    if (status == dnnl_success && c->backward)
        status = pd_pool_backward(&q, &r, *forward, gradient);
    if (status == dnnl_success && is_reference(c->backward ? *gradient : *forward))
        status = dnnl_unimplemented;
    return status;
}

/* Why d must not be run, in one of the two layouts; NULL: it may. */
static const char *why_not(const pool *c, const md *layouts, const_pd d)
{
    return quarantined(
        c->o,
        &(implementation){.task = c->backward ? TASK_AVG_POOL_BACKWARD : TASK_AVG_POOL,
                          .geom = c->geom,
                          .dtype = c->group->node[0]->type.dtype,
                          .name = pd_name(d),
                          .channels_last = layouts == c->last || c->geom->format == ADJ_NHWC});
}

static adj_status make_steps(const pool *c, const md *layouts, const_pd d, adj_prep *p)
{
    static const int args[2][2] = {{DNNL_ARG_SRC, DNNL_ARG_DST},
                                   {DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_SRC}};
    int in = c->backward ? 1 : 0, out = 1 - in; /* 0: x, 1: y */
    size_t scratch = 0;
    adj_status status = layout_of(c->o, layouts[in], c->plain[in], "nchw", &p->in[0]);
    if (status == ADJ_OK)
        status = layout_of(c->o, layouts[out], c->plain[out], "nchw", &p->out[0]);
    if (status != ADJ_OK)
        return status;
    steps *s = steps_new(c->o);
    if (s == NULL)
        return ADJ_ENOMEM;
    dnnl_status_t made = steps_add(s, d,
                                   (step_arg[]){{args[c->backward][0], AT_IN, 0, layouts[in]},
                                                {args[c->backward][1], AT_OUT, 0, layouts[out]},
                                                {0}},
                                   &scratch);
    if (made != dnnl_success) {
        steps_drop(c->o, s);
        return onednn_refuse(made, c->group->node[0]->op->name, p->why);
    }
    steps_finish(s, d, scratch, p);
    return ADJ_OK;
}

/* Tries the layouts in turn, from candidate on. */
static adj_status find(const pool *c, int candidate, adj_prep *p)
{
    const md *layouts[] = {c->plain, c->last};
    int n = c->geom->format == ADJ_NCHW ? 2 : 1;
    adj_status status = ADJ_ENOKERNEL;
    dnnl_status_t queried = dnnl_unimplemented;

    for (int i = 0; i < n && status == ADJ_ENOKERNEL; i++) {
        pd forward = NULL, gradient = NULL;
        queried = query(c, layouts[i], &forward, &gradient);
        const_pd d = c->backward ? gradient : forward;
        const char *reason = queried == dnnl_success ? why_not(c, layouts[i], d) : NULL;
        if (reason != NULL)
            snprintf(p->why, ADJ_WHY, "%s: oneDNN's implementation is left out: %s",
                     c->group->node[0]->op->name, reason);
        else if (queried == dnnl_success && candidate-- == 0)
            status = make_steps(c, layouts[i], d, p);
        else if (queried == dnnl_out_of_memory)
            status = ADJ_ENOMEM;
        if (gradient != NULL)
            dnnl_primitive_desc_destroy(gradient);
        if (forward != NULL)
            dnnl_primitive_desc_destroy(forward);
    }
    if (status == ADJ_ENOKERNEL && p->why[0] == '\0')
        return onednn_refuse(queried == dnnl_success ? dnnl_unimplemented : queried,
                             c->group->node[0]->op->name, p->why);
    return status;
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    const adj_node *n = g->node[0];
    int backward = n->op == &adj_op_avg_pool_grad;
    if ((n->op != &adj_op_avg_pool && !backward) || g->n_node > 1)
        return ADJ_ENOKERNEL;
    adj_status status = onednn_check(n, p->why);
    if (status != ADJ_OK)
        return status;

    const adj_pool_attrs *a = n->attrs;
    pool c = {.o = backend, .group = g, .geom = &a->geom, .backward = backward};
    if (a->kc != 1) {
        snprintf(p->why, ADJ_WHY, "%s: oneDNN has no window in depth", n->op->name);
        return ADJ_ENOKERNEL;
    }
    dnnl_status_t described = describe(&c);
    status = described == dnnl_success ? find(&c, candidate, p)
                                       : onednn_refuse(described, n->op->name, p->why);
    forget(&c);
    return status;
}

const adj_kernel onednn_avg_pool = {
    .name = "avg_pool", .prepare = prepare, .run = steps_run, .drop = steps_drop};
