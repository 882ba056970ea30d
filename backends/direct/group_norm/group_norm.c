/* group_norm.c - the kernel of group_norm.h: the nodes it accepts, its jobs, and the layout of
 * the scratch. */
#include <string.h>

#include "backends/direct/arith.h"
#include "group_norm.h"

static const double parallel_above = 1 << 14; /* elements of x */

/* ---- which nodes ---- */

static int is_gradient(const adj_node *n)
{
    return n->op == &adj_op_group_norm_grad || n->op == &adj_op_group_norm_grad_sums;
}

static int takes(const adj_node *n)
{
    if (n->op != &adj_op_group_norm && !is_gradient(n))
        return 0;
    const adj_dtype dtype = n->in[0]->type.dtype;
    return (dtype == ADJ_F32 || dtype == ADJ_BF16) &&
           ((const adj_group_norm_attrs *)n->attrs)->format == ADJ_NHWC;
}

static const adj_node *dy_of(const adj_node *n) { return n->in[n->n_in - 1]; }

/* Matches both gradients of the same x and dy. */
static int match(const adj_node *root, const adj_uses *uses, int max, const adj_node **group)
{
    if (!takes(root) || max < 2)
        return 0;
    group[0] = root;
    if (!is_gradient(root))
        return 1;
    const adj_op *other = root->op == &adj_op_group_norm_grad ? &adj_op_group_norm_grad_sums
                                                              : &adj_op_group_norm_grad;
    const adj_node *sibling = adj_sibling(root, other, uses);
    if (sibling == NULL || dy_of(sibling) != dy_of(root))
        return 1;
    group[1] = sibling;
    return 2;
}

/* True if the group is one supported node, or both gradients. */
static int is_ours(const adj_group *g)
{
    const adj_node *a = g->node[0], *b = g->node[g->n_node - 1];
    if (g->n_node > 2 || !takes(a) || !takes(b))
        return 0;
    return g->n_node == 1 ||
           (is_gradient(a) && is_gradient(b) && a->op != b->op && a->in[0] == b->in[0] &&
            dy_of(a) == dy_of(b) && memcmp(a->attrs, b->attrs, adj_attr_size(a->op)) == 0);
}

/* ---- preparing ---- */

enum {
    MAX_SEGMENTS = 64,          /* segments of the rows, at most */
    MIN_SEGMENTS = 8,           /* segments even if rows are long */
    SEGMENT_ELEMENTS = 1 << 19, /* elements of all segments, otherwise */
    FEW_IMAGES = 8,             /* so few that groups are jobs */
    MIN_CHUNK = 32              /* channels of a chunk: two cache lines */
};

/* Finds the indices of operands and results in the group. */
static void find_operands(group_norm *p, const adj_group *g)
{
    p->x = adj_group_in(g, g->node[0]->in[0]);
    p->gamma = p->beta = p->dy = p->y = p->sums = -1;
    for (int i = 0; i < g->n_node; i++) {
        const adj_node *n = g->node[i];
        if (is_gradient(n))
            p->dy = adj_group_in(g, dy_of(n));
        if (n->op == &adj_op_group_norm_grad_sums) {
            p->sums = adj_group_out(g, n);
            continue;
        }
        p->y = adj_group_out(g, n);
        p->gamma = adj_group_in(g, n->in[1]);
        if (n->op == &adj_op_group_norm)
            p->beta = adj_group_in(g, n->in[2]);
    }
}

static void set_jobs(group_norm *p, int max_threads)
{
    const double elements = (double)p->n * (double)p->pixels * (double)p->channels;
    p->chunk = p->groups;
    if (p->pixels > 1 && p->n < FEW_IMAGES && p->rest > 0)
        p->chunk = min(p->groups, divide_up(MIN_CHUNK, p->rest));
    p->chunks = divide_up(p->groups, p->chunk);
    p->work.jobs = p->n * p->chunks;
    p->partials = p->n;
    if (p->pixels == 1) {
        ptrdiff_t small = SEGMENT_ELEMENTS / max(p->channels, 1);
        p->partials = min(p->n, min(MAX_SEGMENTS, max(MIN_SEGMENTS, small)));
        p->work.jobs = p->partials;
    }
    if (elements == 0) /* sums over no elements */
        p->partials = p->work.jobs = 0;
    p->work.threads = elements > parallel_above ? max_threads : 1;
}

/* Lays out the scratch; returns 0 if it would be too large to be fast. */
static int set_scratch(group_norm *p, size_t *scratch)
{
    const double max_bytes = 1 << 30;
    const ptrdiff_t lanes = p->pixels == 1 ? p->channels : p->chunk * p->rest;
    const int keeps_sums = p->dy >= 0 || p->pixels != 1;
    const ptrdiff_t partials = p->sums >= 0 ? p->partials : 0;
    if ((double)lanes * 64 * p->work.threads + (double)partials * 8 * (double)p->channels >
        max_bytes)
        return 0;
    size_t thread = 0;
    p->accumulated = reserve(&thread, keeps_sums ? 2 * lanes : 0, sizeof(float));
    p->total = reserve(&thread, keeps_sums ? 2 * lanes : 0, sizeof(double));
    p->column = reserve(&thread, p->pixels == 1 ? 0 : 4 * lanes, sizeof(float));
    p->per_thread = thread;
    *scratch = 0;
    p->partial = reserve(scratch, partials * 2 * p->channels, sizeof(float));
    p->thread = reserve(scratch, p->work.threads, p->per_thread);
    return 1;
}

static int plan(group_norm *p, const direct *d, const adj_group *g, size_t *scratch)
{
    const adj_node *first = g->node[0];
    const adj_group_norm_attrs *a = first->attrs;
    const adj_type x = first->in[0]->type;
    *p = (group_norm){.n = x.shape.dim[0],
                      .pixels = 1,
                      .channels = x.shape.dim[x.shape.rank - 1],
                      .groups = a->groups,
                      .epsilon = a->epsilon};
    p->rest = p->channels / p->groups;
    for (int i = 1; i < x.shape.rank - 1; i++)
        p->pixels *= x.shape.dim[i];
    const group_norm_code *const *code =
        p->pixels == 1 ? d->isa->group_norm_rows : d->isa->group_norm_image;
    const group_norm_code *typed = code[x.dtype == ADJ_BF16];
    p->work.code = is_gradient(first) ? &typed->backward : &typed->forward;
    find_operands(p, g);
    set_jobs(p, d->threads);
    return set_scratch(p, scratch);
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *prep)
{
    const direct *d = backend;
    const adj_op *op = g->node[0]->op;
    group_norm plan_of, *p = &plan_of;
    if (candidate > 0 || (op != &adj_op_group_norm && !is_gradient(g->node[0])))
        return ADJ_ENOKERNEL;
    if (!is_ours(g) || !plan(p, d, g, &prep->scratch))
        return direct_refuse(prep, "%s: direct takes f32 and bf16 in NHWC", op->name);
    if (p->y >= 0) /* a group is read completely before it is written */
        prep->alias[0] = (adj_alias){p->y, 1u << p->x | (p->dy >= 0 ? 1u << p->dy : 0)};
    return direct_accept(d, g, prep, p->pixels == 1 ? "group_norm_rows" : "group_norm_image", p,
                         sizeof *p);
}

/* ---- running ---- */

void group_norm_add_partials(const adj_call *c, ptrdiff_t job)
{
    const group_norm *p = c->state;
    const float *sum_of = direct_scratch(c, p->partial);
    (void)job;
    if (p->sums < 0)
        return;
    float *sums = c->out[p->sums];
    for (ptrdiff_t i = 0; i < 2 * p->channels; i++) {
        double sum = 0;
        for (ptrdiff_t k = 0; k < p->partials; k++)
            sum += (double)sum_of[k * 2 * p->channels + i];
        sums[i] = (float)sum;
    }
}

const adj_kernel direct_group_norm = {.name = "group_norm",
                                      .match = match,
                                      .prepare = prepare,
                                      .run = direct_run,
                                      .drop = direct_drop};
