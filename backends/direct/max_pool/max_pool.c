/* max_pool.c - the kernel of max_pool.h: the nodes it accepts, and its jobs. */
#include <math.h>
#include <string.h>

#include "backends/direct/arith.h"
#include "max_pool.h"

static const int64_t parallel_above = 1 << 14; /* elements of x */

/* ---- which nodes ---- */

static int has_overlap(const adj_conv_geom *g) { return g->sh < g->kh || g->sw < g->kw; }

static int is_argmax(const adj_node *n)
{
    return n->op == &adj_op_max_pool_argmax || n->op == &adj_op_max_pool_grad_argmax;
}

static int is_pool(const adj_node *n)
{
    return n->op == &adj_op_max_pool || n->op == &adj_op_max_pool_grad || is_argmax(n);
}

/* True if the position in a window fits an int32_t, or a byte if it is stored. */
static int takes(const adj_node *n)
{
    if (!is_pool(n))
        return 0;
    const adj_pool_attrs *a = n->attrs;
    const adj_dtype dtype = n->op == &adj_op_max_pool_argmax ? n->in[0]->type.dtype : n->type.dtype;
    if ((dtype != ADJ_F32 && dtype != ADJ_BF16) || a->kc != 1 || a->geom.format != ADJ_NHWC ||
        a->geom.ih > INT16_MAX || a->geom.iw > INT16_MAX)
        return 0;
    return !is_argmax(n) || (!has_overlap(&a->geom) && a->geom.kh <= UINT8_MAX &&
                             a->geom.kw <= UINT8_MAX && a->geom.kh * a->geom.kw <= UINT8_MAX);
}

/* Returns the relu that is y's only user, or NULL. */
static const adj_node *relu_of(const adj_node *y, const adj_uses *uses)
{
    const adj_node *user = adj_only_user(y, uses);
    return user != NULL && user->op == &adj_op_relu ? user : NULL;
}

/* Matches max_pool, max_pool_argmax of the same operand, relu. */
static int match(const adj_node *root, const adj_uses *uses, int max, const adj_node **group)
{
    const adj_node *y = root;
    int n = 0;
    if (root->op == &adj_op_max_pool_argmax)
        y = adj_sibling(root, &adj_op_max_pool, uses);
    if (y == NULL || y->op != &adj_op_max_pool || !takes(y) || max < 3)
        return 0;
    const adj_node *argmax = adj_sibling(y, &adj_op_max_pool_argmax, uses),
                   *relu = relu_of(y, uses);
    group[n++] = y;
    if (argmax != NULL && takes(argmax))
        group[n++] = argmax;
    if (relu != NULL)
        group[n++] = relu;
    return n;
}

/* ---- preparing ---- */

/* The nodes of a group; NULL if absent. */
typedef struct {
    const adj_node *y, *argmax, *relu, *gradient;
} members;

/* Finds the nodes of the group; returns 0 if it is not supported. */
static int sort_out(const adj_group *g, members *p)
{
    *p = (members){0};
    for (int i = 0; i < g->n_node; i++) {
        const adj_node *n = g->node[i];
        const adj_node **member = n->op == &adj_op_max_pool          ? &p->y
                                  : n->op == &adj_op_max_pool_argmax ? &p->argmax
                                  : n->op == &adj_op_relu            ? &p->relu
                                                                     : &p->gradient;
        if (*member != NULL || (member != &p->relu && !takes(n)))
            return 0;
        *member = n;
    }
    if (p->gradient != NULL)
        return g->n_node == 1;
    if (p->y == NULL)
        return g->n_node == 1 && p->argmax != NULL;
    if (p->argmax != NULL && (adj_group_out(g, p->argmax) < 0 || p->argmax->in[0] != p->y->in[0] ||
                              memcmp(p->argmax->attrs, p->y->attrs, sizeof(adj_pool_attrs)) != 0))
        return 0;
    return p->relu == NULL || (p->relu->in[0] == p->y && adj_group_out(g, p->y) < 0);
}

/* Plans a ring of the rows that a window covers. Returns 0 if it is too large. */
static int plan_ring(max_pool *p, size_t *scratch)
{
    const adj_conv_geom *g = &p->g;
    const size_t line = 64; /* bytes of a cache line, which two threads must not share */
    p->chunks = (g->ic + MAX_POOL_CHUNK - 1) / MAX_POOL_CHUNK;
    p->slots = min(g->kh, g->ih);
    if (__builtin_mul_overflow((size_t)p->slots * sizeof(float), (size_t)g->iw, &p->ring) ||
        __builtin_mul_overflow(p->ring, (size_t)min(g->ic, MAX_POOL_CHUNK), &p->ring) ||
        __builtin_add_overflow(p->ring, line - 1, &p->ring))
        return 0;
    p->ring -= p->ring % line;
    return !__builtin_mul_overflow(p->ring, (size_t)p->work.threads, scratch);
}

static adj_status plan_forward(max_pool *p, const direct *d, const adj_group *g, const members *n,
                               adj_prep *prep)
{
    const adj_node *y = n->relu != NULL ? n->relu : n->y;
    const adj_node *x = (n->y != NULL ? n->y : n->argmax)->in[0];
    p->x = adj_group_in(g, x);
    p->y = y != NULL ? adj_group_out(g, y) : -1;
    p->floor = n->relu != NULL ? 0 : -INFINITY;
    p->work.code = &d->isa->max_pool[x->type.dtype == ADJ_BF16]->forward[n->argmax != NULL];
    if (n->argmax == NULL)
        return ADJ_OK;
    p->argmax = adj_group_out(g, n->argmax);
    if (p->y < 0 &&
        (__builtin_mul_overflow((size_t)p->g.ic, sizeof(float), &prep->scratch) ||
         __builtin_mul_overflow(prep->scratch, (size_t)p->work.threads, &prep->scratch)))
        return ADJ_ENOKERNEL;
    return ADJ_OK;
}

static adj_status plan_backward(max_pool *p, const direct *d, const adj_group *g, const adj_node *n,
                                adj_prep *prep)
{
    p->dy = adj_group_in(g, n->in[n->n_in - 1]);
    p->work.code = &d->isa->max_pool[n->type.dtype == ADJ_BF16]->backward[is_argmax(n)];
    if (is_argmax(n)) {
        p->argmax = adj_group_in(g, n->in[0]);
        return ADJ_OK;
    }
    p->x = adj_group_in(g, n->in[0]);
    if (!plan_ring(p, &prep->scratch))
        return ADJ_ENOKERNEL;
    p->work.jobs = p->g.n * p->chunks;
    return ADJ_OK;
}

/* Accepts a group with an argmax among its operands or results; its layout is bytes. */
static adj_status accept(direct *d, const adj_group *g, const members *n, const max_pool *p,
                         adj_prep *prep)
{
    const adj_layout **of = n->gradient != NULL ? prep->in : prep->out;
    const adj_node *const *value = n->gradient != NULL ? g->in : g->out;
    const adj_layout *bytes = NULL;
    if (p->argmax >= 0 &&
        (bytes = direct_bytes(d, adj_shape_elems(value[p->argmax]->type.shape))) == NULL)
        return ADJ_ENOMEM;
    const adj_status status = direct_accept(d, g, prep, "max_pool", p, sizeof *p);
    if (p->argmax >= 0)
        of[p->argmax] = bytes;
    return status;
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *prep)
{
    direct *d = backend;
    members n;
    if (candidate > 0 || !is_pool(g->node[0]))
        return ADJ_ENOKERNEL;
    if (!sort_out(g, &n))
        return direct_refuse(prep,
                             "%s: direct takes f32 and bf16 in NHWC, without a window in depth",
                             g->node[0]->op->name);
    const adj_node *first = n.gradient != NULL ? n.gradient : n.y != NULL ? n.y : n.argmax;
    max_pool p = {.g = ((const adj_pool_attrs *)first->attrs)->geom,
                  .x = -1,
                  .dy = -1,
                  .y = -1,
                  .argmax = -1};
    p.work.threads = p.g.n * p.g.ih * p.g.iw * p.g.ic > parallel_above ? d->threads : 1;
    p.work.jobs = p.g.n * p.g.oh;
    adj_status status = n.gradient != NULL ? plan_backward(&p, d, g, n.gradient, prep)
                                           : plan_forward(&p, d, g, &n, prep);
    return status == ADJ_OK ? accept(d, g, &n, &p, prep) : status;
}

const adj_kernel direct_max_pool = {
    .name = "max_pool", .match = match, .prepare = prepare, .run = direct_run, .drop = direct_drop};
