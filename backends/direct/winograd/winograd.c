/* winograd.c - the kernel of winograd.h: the nodes it accepts, its blocks, and its jobs. */
#include <omp.h>
#include <stdio.h>

#include "backends/direct/arith.h"
#include "winograd.h"

enum {
    MAX_CHANNELS = 1024,
    MAX_SIDE = 1 << 16,
    MIN_TILES = 64, /* least tiles in bf16 */
    COPY_FLOATS = 3 << 11,
    /* y, dx: tiles of a block, at most and in multiples: rows of the product in registers */
    MAX_BLOCK = 24,
    BLOCK_STEP = 6,
    /* dw: tiles of a block, the same on every machine, since blocks and segments determine the
     * order of sums. More tiles in a block mean fewer passes over the sums. */
    MIN_BLOCK_DW = 32,
    MAX_BLOCK_DW = 256,
    BLOCK_FLOATS = 9 << 16, /* floats of a block's points, of x and dy, if all threads work on it */
    OWN_BLOCK_FLOATS = 3 << 15, /* the same if one thread works on it */
    SEGMENTS = 16,
    SEGMENT_FLOATS = 9 << 14 /* floats of a segment's sums: these and the points fit its cache */
};

static int is_forward(const adj_node *n) { return n->op == &adj_op_conv2d; }
static int is_dx(const adj_node *n) { return n->op == &adj_op_conv2d_backprop_input; }
static int is_dw(const adj_node *n) { return n->op == &adj_op_conv2d_backprop_filter; }
static int is_conv(const adj_node *n) { return is_forward(n) || is_dx(n) || is_dw(n); }

static const adj_conv_geom *geom_of(const adj_node *n)
{
    return &((const adj_conv_attrs *)n->attrs)->geom;
}

static int has_channels(int64_t c) { return c > 0 && c <= MAX_CHANNELS && c % WINOGRAD_LANES == 0; }

static int has_side(int64_t x) { return x > 0 && x <= MAX_SIDE; }

static int has_kernel(const adj_conv_geom *g)
{
    return g->kh == g->kw && (g->kh == 3 || g->kh == 5);
}

static int takes(const adj_node *n)
{
    const adj_conv_geom *g = geom_of(n);
    const adj_dtype dtype = n->type.dtype;
    return (dtype == ADJ_F32 || dtype == ADJ_BF16) && n->in[0]->type.dtype == dtype &&
           g->format == ADJ_NHWC && has_kernel(g) && g->sh == 1 && g->sw == 1 && g->dh == 1 &&
           g->dw == 1 && g->groups == 1 && has_channels(g->ic) && has_channels(g->oc) &&
           has_side(g->ih) && has_side(g->iw) && has_side(g->oh) && has_side(g->ow) &&
           has_side(g->n) && g->pt <= MAX_SIDE && g->pl <= MAX_SIDE;
}

static int match(const adj_node *root, const adj_uses *uses, int max, const adj_node **group)
{
    if (!is_conv(root) || !takes(root))
        return 0;
    if (is_dw(root))
        return direct_match_filter(root, uses, max, group);
    return direct_match_bias(root, uses, is_forward(root) ? max : max < 1 ? max : 1, group);
}

static int is_ours(const adj_group *g, direct_epilogue *e)
{
    if (direct_read_epilogue(g, e))
        return (g->n_node == 1 || is_forward(g->node[0])) && e->stored == g->node[0]->type.dtype;
    return g->n_node == 2 && g->n_out == 1 && is_dw(g->node[0]) && direct_is_widening(g->node[1]);
}

/* Sets the sizes. A tile's window begins pt rows before it; for dx, in dy, kh - 1 - pt rows
 * before. */
static void set_sizes(winograd *p, const adj_conv_geom *g)
{
    p->n = g->n;
    direct_set_sizes(g, p->is_dx, &p->src, &p->dst);
    p->kernel = g->kh;
    p->window = WINOGRAD_TILE + p->kernel - 1;
    p->points = p->window * p->window;
    p->top = p->is_dx ? g->kh - 1 - g->pt : g->pt;
    p->left = p->is_dx ? g->kw - 1 - g->pl : g->pl;
    p->down = divide_up(p->dst.h, WINOGRAD_TILE);
    p->across = divide_up(p->dst.w, WINOGRAD_TILE);
    p->tiles = p->n * p->down * p->across;
    p->panels = divide_up(p->dst.c, WINOGRAD_PANEL);
}

/* Sets the blocks of y and dx: of about equal size, equally many for each thread. */
static void set_blocks(winograd *p, ptrdiff_t second_cache)
{
    p->segments = 1;
    if (p->is_dw) {
        if (p->points * p->src.c * p->dst.c <= SEGMENT_FLOATS &&
            p->tiles >= (ptrdiff_t)SEGMENTS * MIN_BLOCK_DW)
            p->segments = SEGMENTS;
        ptrdiff_t floats = p->segments > 1 ? OWN_BLOCK_FLOATS : BLOCK_FLOATS;
        ptrdiff_t fit = floats / (p->points * (p->src.c + p->dst.c));
        p->block = min(divide_up(p->tiles, p->segments), max(MIN_BLOCK_DW, min(fit, MAX_BLOCK_DW)));
    } else {
        /* half of the cache, which leaves room for the products */
        ptrdiff_t windows = second_cache / 2 / (ptrdiff_t)sizeof(float);
        ptrdiff_t fit = windows / (p->points * p->src.c);
        ptrdiff_t fitting = fit < MAX_BLOCK ? MAX_BLOCK / 2 : MAX_BLOCK;
        ptrdiff_t rounds = divide_up(p->tiles, fitting * p->threads);
        p->block = divide_up(divide_up(p->tiles, rounds * p->threads), BLOCK_STEP) * BLOCK_STEP;
    }
    p->blocks = divide_up(p->tiles, p->block);
}

/* Sets how many tiles are copied at once: their pixels and the points fit into the first cache. */
static void set_copies(winograd *p)
{
    const ptrdiff_t c = p->is_dw ? max(p->src.c, p->dst.c) : p->src.c;
    const ptrdiff_t fit = (COPY_FLOATS / (p->window * c) - p->window) / WINOGRAD_TILE + 1;
    p->tiles_per_copy = min(p->across, max(fit, 1));
    p->copy_floats = p->window * ((p->tiles_per_copy - 1) * WINOGRAD_TILE + p->window) * c;
}

/* Lays out the scratch. Strides of points are a cache line off a power of two. Returns 0 if it
 * is too large. */
static int set_scratch(winograd *p, size_t *scratch)
{
    const ptrdiff_t line = 16;
    ptrdiff_t pairs = p->src.c * p->dst.c;
    p->u_step = p->is_dw ? pairs + line : pairs;
    p->v_step = p->block * p->src.c + line;
    p->m_step = p->block * (p->is_dw ? p->dst.c : min(p->dst.c, WINOGRAD_PANEL)) + line;
    p->copies_at = p->by_reorder ? 0 : (size_t)(p->segments * p->points * p->u_step);
    p->v_at = p->copies_at + (size_t)(p->threads * p->copy_floats);
    p->v_floats = (size_t)(p->points * (p->v_step + p->m_step));
    const size_t buffers = p->is_dw && p->segments == 1 ? 1 : (size_t)p->threads;
    return !__builtin_mul_overflow(p->v_floats, buffers, scratch) &&
           !__builtin_add_overflow(*scratch, p->v_at, scratch) &&
           !__builtin_mul_overflow(*scratch, sizeof(float), scratch);
}

/* ---- the filter of y and dx, transformed before it enters the kernel ----
 *
 * If it changes only when a parameter is set, a reorder transforms it once, instead of each run.
 * Its layout is image.c's u. */

static int is_same(const void *of, const void *other)
{
    const winograd *a = of, *b = other;
    return a->code == b->code && a->is_dx == b->is_dx && a->kernel == b->kernel &&
           a->src.c == b->src.c && a->dst.c == b->dst.c;
}

static size_t packed_bytes(const void *of)
{
    const winograd *p = of;
    return (size_t)(p->points * p->src.c * p->dst.c) * sizeof(float);
}

static void pack(const void *of, const void *filter, void *packed)
{
    const winograd *p = of;
    const adj_call call = {.state = (void *)p, .in = &filter, .scratch = packed};
#pragma omp parallel for schedule(static) num_threads(p->threads) if (p->threads > 1)
    for (ptrdiff_t job = 0; job < p->src.c / WINOGRAD_LANES; job++)
        p->code->filter(p, &call, job);
}

static const direct_packing packing = {sizeof(winograd), is_same, packed_bytes, pack};

/* Returns NULL if out of memory. */
static const adj_layout *packed_filter(direct *d, const winograd *p)
{
    /* The filter is the only operand, and u begins the scratch. */
    const winograd of = {.code = p->code,
                         .is_dx = p->is_dx,
                         .kernel = p->kernel,
                         .points = p->points,
                         .src.c = p->src.c,
                         .dst.c = p->dst.c,
                         .threads = p->threads};
    char name[16];
    snprintf(name, sizeof name, "points%d%s", (int)p->points, p->is_dx ? "dx" : "");
    return direct_packed_filter(d, &packing, &of, name);
}

/* ---- the kernel ---- */

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *prep)
{
    direct *d = backend;
    const adj_node *n = g->node[0];
    direct_epilogue epilogue;
    if (candidate > 0 || d->math != ADJ_MATH_FAST || !is_conv(n) || !is_ours(g, &epilogue))
        return ADJ_ENOKERNEL;
    if (!takes(n))
        return direct_refuse(prep,
                             "%s: Winograd's algorithm takes f32 and bf16 in NHWC, 3x3 and 5x5, "
                             "stride 1, dilation 1, channels in multiples of %d up to %d",
                             n->op->name, WINOGRAD_LANES, MAX_CHANNELS);
    const int is_bf16 = n->in[0]->type.dtype == ADJ_BF16;
    winograd p = {.code = (is_dw(n) ? d->isa->winograd_filter : d->isa->winograd_image)[is_bf16],
                  .dtype = g->out[0]->type.dtype,
                  .is_dx = is_dx(n),
                  .is_dw = is_dw(n),
                  .src_in = adj_group_in(g, n->in[is_dx(n) ? 1 : 0]),
                  .other_in = adj_group_in(g, n->in[is_dx(n) ? 0 : 1]),
                  .epilogue = epilogue,
                  .threads = d->threads};
    p.by_reorder = !p.is_dw && direct_packs_once(g, prep, p.other_in);
    set_sizes(&p, geom_of(n));
    /* otherwise a plan would not try f32 kernels where no other supports bf16 */
    if (is_bf16 && (p.tiles < MIN_TILES || d->isa == &direct_isa_base))
        return direct_refuse(prep, "%s: Winograd's algorithm is slower in bf16", n->op->name);
    set_blocks(&p, d->second_cache);
    set_copies(&p);
    if (!set_scratch(&p, &prep->scratch))
        return ADJ_ENOKERNEL;
    const adj_status status = p.by_reorder
                                  ? direct_accept_packed(d, g, prep, "winograd", &p, sizeof p,
                                                         p.other_in, packed_filter(d, &p))
                                  : direct_accept(d, g, prep, "winograd", &p, sizeof p);
    /* products have whole steps of tiles */
    prep->seconds *= (double)round_up(p.tiles, BLOCK_STEP) / (double)p.tiles;
    /* points of the filter, or sums of its gradient's */
    direct_count_packed(prep, p.by_reorder, (double)(p.points * p.u_step) * sizeof(float));
    return status;
}

/* Runs in each thread. */
static void run_image(const winograd *p, const adj_call *c, job_shares *blocks)
{
    if (!p->by_reorder) {
#pragma omp for schedule(static)
        for (ptrdiff_t job = 0; job < p->src.c / WINOGRAD_LANES; job++)
            p->code->filter(p, c, job);
    }
    for (job_range r; take_jobs(blocks, omp_get_thread_num(), &r);)
        p->code->blocks(p, c, r.first, r.end, omp_get_thread_num());
}

static void sum_by_all(const winograd *p, const adj_call *c)
{
    for (ptrdiff_t block = 0; block < p->blocks; block++) {
#pragma omp for schedule(static)
        for (int i = 0; i < p->threads; i++)
            p->code->transform(p, c, block, i);
#pragma omp for schedule(static)
        for (ptrdiff_t job = 0; job < p->points * p->panels; job++)
            p->code->product(p, c, block, job);
    }
}

static void sum_segments(const winograd *p, const adj_call *c, job_shares *segments)
{
    for (job_range r; take_jobs(segments, omp_get_thread_num(), &r);)
        for (ptrdiff_t segment = r.first; segment < r.end; segment++)
            p->code->segment(p, c, segment, omp_get_thread_num());
#pragma omp barrier
}

static void run_filter(const winograd *p, const adj_call *c, job_shares *segments)
{
    if (p->segments > 1)
        sum_segments(p, c, segments);
    else
        sum_by_all(p, c);
#pragma omp for schedule(static)
    for (ptrdiff_t job = 0; job < p->src.c; job++)
        p->code->result(p, c, job);
}

static adj_status run(const adj_call *c)
{
    const winograd *p = c->state;
    job_shares shares; /* jobs are segments or blocks */
    share_jobs(&shares, p->is_dw ? p->segments : p->blocks, p->threads);
#pragma omp parallel num_threads(p->threads) if (p->threads > 1)
    {
        if (p->is_dw)
            run_filter(p, c, &shares);
        else
            run_image(p, c, &shares);
    }
    return ADJ_OK;
}

const adj_kernel direct_winograd = {.name = "winograd",
                                    .match = match,
                                    .epilogue = direct_propose_epilogue,
                                    .prepare = prepare,
                                    .run = run,
                                    .drop = direct_drop};
