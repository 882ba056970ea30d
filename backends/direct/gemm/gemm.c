/* gemm.c - the kernel of gemm.h: what it takes, its rows, what lies where in the scratch. */
#include "backends/direct/arith.h"
#include "gemm.h"

enum {
    MAX_SIDE = 1 << 24,
    LANES = 16,
    ROW_PIXELS = 96,  /* of a flat row */
    BAND_PIXELS = 48, /* whose windows are gathered at a time */
    SHORT_ROW = 6     /* measured: rows of fewer pixels are gathered */
};
static const ptrdiff_t max_elements = 1 << 24; /* of any part of the scratch */

/* ---- what is ours ---- */

static int is_matmul(const adj_node *n)
{
    const adj_matmul_attrs *a = n->attrs;
    return n->op == &adj_op_matmul && !a->transpose_a && !a->transpose_b;
}

static int is_root(const adj_node *n)
{
    return (n->op == &adj_op_conv2d || n->op == &adj_op_matmul) && n->type.dtype == ADJ_F32;
}

static int match(const adj_node *root, const adj_uses *uses, int max, const adj_node **group)
{
    return is_root(root) ? direct_match_bias(root, uses, max, group) : 0;
}

static int is_ours(const adj_group *g)
{
    return is_root(g->node[0]) &&
           (g->n_node == 1 ||
            (g->n_node == 2 && direct_is_bias_of(g->node[1], g->node[0]) && g->n_out == 1));
}

/* ---- geometry ---- */

static void set_matmul(gemm *p, const adj_node *n)
{
    const adj_shape a = n->in[0]->type.shape;
    p->g = (adj_conv_geom){.format = ADJ_NHWC,
                           .n = 1,
                           .ih = 1,
                           .iw = a.dim[0],
                           .ic = a.dim[1],
                           .oh = 1,
                           .ow = a.dim[0],
                           .oc = n->type.shape.dim[1],
                           .kh = 1,
                           .kw = 1,
                           .sh = 1,
                           .sw = 1,
                           .dh = 1,
                           .dw = 1,
                           .groups = 1};
}

/* Nothing of it is empty, and all products of sizes stay far from an overflow. */
static int has_sizes(const adj_conv_geom *g)
{
    const int64_t sizes[] = {g->n,  g->ih, g->iw, g->ic, g->oh, g->ow, g->oc,
                             g->kh, g->kw, g->sh, g->sw, g->dh, g->dw};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i] < 1 || sizes[i] > MAX_SIDE)
            return 0;
    return g->pt >= 0 && g->pl >= 0 && g->pt <= MAX_SIDE && g->pl <= MAX_SIDE &&
           g->format == ADJ_NHWC && g->groups == 1;
}

/* All pixels as rows of about ROW_PIXELS, as many for each thread. */
static void flatten(gemm *p)
{
    adj_conv_geom *g = &p->g;
    p->pixels = g->n * g->oh * g->ow;
    ptrdiff_t rows = divide_up(p->pixels, ROW_PIXELS);
    rows = min(round_up(rows, p->work.threads), p->pixels);
    g->ow = g->iw = divide_up(p->pixels, rows);
    g->oh = g->ih = divide_up(p->pixels, g->ow);
    g->n = 1;
}

/* Which rows of x are needed at a time, and in what form. */
static void set_rows(gemm *p, ptrdiff_t reach)
{
    const adj_conv_geom *g = &p->g;
    p->is_gathered = !p->is_flat && g->kh * g->kw > 1 && g->ow < SHORT_ROW;
    p->band = p->is_gathered ? min(max(BAND_PIXELS / g->ow, 1), g->oh) : 1;
    p->bands = divide_up(g->oh, p->band);
    p->is_padded = !p->is_flat && (g->pl > 0 || reach > g->iw);
    p->slots = p->is_padded ? (p->band - 1) * g->sh + (g->kh - 1) * g->dh + 1 : 0;
    p->row = p->is_padded ? reach * g->ic : 0;
}

/* 0: too large. */
static int set_scratch(gemm *p, size_t *scratch)
{
    const adj_conv_geom *g = &p->g;
    const ptrdiff_t reach = (g->ow - 1) * g->sw + (g->kw - 1) * g->dw + 1; /* columns of x */
    size_t thread = 0;

    if (reach > max_elements)
        return 0;
    set_rows(p, reach);
    const ptrdiff_t pixels = p->band * g->ow;
    if (p->row > max_elements || p->slots > max_elements / max(p->row, 1) ||
        p->taps > max_elements || (p->is_gathered && pixels > max_elements / p->taps))
        return 0;
    p->ring = reserve_ring(&thread, p->slots, p->row, sizeof(float));
    p->windows = reserve(&thread, p->is_gathered ? pixels * p->taps : 0, sizeof(float));
    p->product = reserve(&thread, p->rest > 0 ? pixels * LANES : 0, sizeof(float));
    p->per_thread = thread;
    *scratch = 0;
    p->panel = reserve(scratch, p->rest > 0 ? p->taps * LANES : 0, sizeof(float));
    p->thread = reserve(scratch, p->work.threads, p->per_thread);
    return 1;
}

static int plan(gemm *p, const direct *d, const adj_group *group, size_t *scratch)
{
    const adj_node *n = group->node[0];
    *p = (gemm){.bias_in = -1};
    if (n->op == &adj_op_matmul && !is_matmul(n))
        return 0;
    if (is_matmul(n))
        set_matmul(p, n);
    else
        p->g = ((const adj_conv_attrs *)n->attrs)->geom;
    adj_conv_geom *g = &p->g;
    if (!has_sizes(g) || g->kh > max_elements / g->kw || g->kh * g->kw > max_elements / g->ic)
        return 0;
    p->x_in = adj_group_in(group, n->in[0]);
    p->w_in = adj_group_in(group, n->in[1]);
    if (group->n_node == 2)
        p->bias_in = adj_group_in(group, group->node[1]->in[1]);
    p->work.code = d->isa->gemm;
    p->work.threads = direct_conv_threads(d, n);
    p->span = g->kw * g->ic;
    p->taps = g->kh * p->span;
    const ptrdiff_t vector = d->isa->vector_bytes / (ptrdiff_t)sizeof(float);
    p->whole = g->oc / vector * vector;
    p->rest = g->oc - p->whole;
    p->is_flat = g->kh == 1 && g->kw == 1 && g->sh == 1 && g->sw == 1 && g->pt == 0 && g->pl == 0 &&
                 g->oh == g->ih && g->ow == g->iw;
    if (p->is_flat)
        flatten(p);
    int fine = set_scratch(p, scratch);
    p->work.jobs = min(p->work.threads, g->n * p->bands);
    return fine;
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *prep)
{
    const direct *d = backend;
    gemm p;
    if (candidate > 0 || !is_ours(g))
        return ADJ_ENOKERNEL;
    if (!plan(&p, d, g, &prep->scratch))
        return direct_refuse(prep,
                             "%s: direct takes f32 in NHWC, without groups, matrices as they lie",
                             g->node[0]->op->name);
    return direct_accept(d, prep, "gemm", &p, sizeof p);
}

const adj_kernel direct_gemm = {
    .name = "gemm", .match = match, .prepare = prepare, .run = direct_run, .drop = direct_drop};
