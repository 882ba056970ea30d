/* max_pool.c - the kernel of max_pool.h: what it takes, and its jobs among the threads. */
#include <omp.h>
#include <stdio.h>

#include "max_pool.h"

static const int64_t parallel_above = 1 << 14; /* elements of x */

static int is_ours(const adj_group *g)
{
    const adj_op *op = g->node[0]->op;
    return g->n_node == 1 && (op == &adj_op_max_pool || op == &adj_op_max_pool_grad);
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* The rows that a window covers live at a time. 0: too large. */
static int plan_ring(max_pool *p, size_t *scratch)
{
    const adj_conv_geom *g = &p->g;
    const size_t line = 64; /* of the cache: threads do not share one */
    p->chunks = (g->ic + MAX_POOL_CHUNK - 1) / MAX_POOL_CHUNK;
    p->slots = smaller(g->kh, g->ih);
    if (__builtin_mul_overflow((size_t)p->slots * sizeof(float), (size_t)g->iw, &p->ring) ||
        __builtin_mul_overflow(p->ring, (size_t)smaller(g->ic, MAX_POOL_CHUNK), &p->ring) ||
        __builtin_add_overflow(p->ring, line - 1, &p->ring))
        return 0;
    p->ring -= p->ring % line;
    return !__builtin_mul_overflow(p->ring, (size_t)p->threads, scratch);
}

static int plan(max_pool *p, const direct *backend, const adj_node *n, size_t *scratch)
{
    const max_pool_code *code =
        n->type.dtype == ADJ_F32 ? backend->isa->max_pool : backend->isa->max_pool_bf16;
    const adj_conv_geom *g = &p->g;
    int is_forward = n->op == &adj_op_max_pool, overlap = g->sh < g->kh || g->sw < g->kw;
    p->threads = adj_shape_elems(n->in[0]->type.shape) > parallel_above ? backend->threads : 1;
    p->jobs = g->n * g->oh;
    p->job = is_forward ? code->forward : code->backward;
    if (is_forward || !overlap)
        return 1;
    p->job = code->backward_overlapping;
    if (!plan_ring(p, scratch))
        return 0;
    p->jobs = g->n * p->chunks;
    return 1;
}

/* A pixel of a window has a number that fits an int32_t. */
static int takes(const adj_node *n)
{
    const adj_pool_attrs *a = n->attrs;
    return (n->type.dtype == ADJ_F32 || n->type.dtype == ADJ_BF16) && a->kc == 1 &&
           a->geom.format == ADJ_NHWC && a->geom.ih <= INT16_MAX && a->geom.iw <= INT16_MAX;
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *prep)
{
    direct *b = backend;
    const adj_node *n = g->node[0];
    if (!is_ours(g) || candidate > 0)
        return ADJ_ENOKERNEL;
    if (!takes(n)) {
        snprintf(prep->why, ADJ_WHY,
                 "%s: direct takes f32 and bf16 in NHWC, without a window in depth", n->op->name);
        return ADJ_ENOKERNEL;
    }
    max_pool *p = adj_alloc(&b->allocator, sizeof *p);
    if (p == NULL)
        return ADJ_ENOMEM;
    *p = (max_pool){.g = ((const adj_pool_attrs *)n->attrs)->geom,
                    .x = direct_in(g, n->in[0]),
                    .dy = direct_in(g, n->in[n->n_in - 1])};
    if (!plan(p, b, n, &prep->scratch)) {
        adj_release(&b->allocator, p);
        return ADJ_ENOKERNEL;
    }
    prep->state = p;
    snprintf(prep->impl, sizeof prep->impl, "max_pool:%s", b->isa->name);
    return ADJ_OK;
}

static adj_status run(const adj_call *c)
{
    const max_pool *p = c->state;
#pragma omp parallel for num_threads(p->threads) schedule(static) if (p->threads > 1 && p->jobs > 1)
    for (ptrdiff_t job = 0; job < p->jobs; job++)
        p->job(p, c, job, omp_get_thread_num());
    return ADJ_OK;
}

static void drop(void *backend, void *state)
{
    direct *d = backend;
    adj_release(&d->allocator, state);
}

const adj_kernel direct_max_pool = {
    .name = "max_pool", .prepare = prepare, .run = run, .drop = drop};
