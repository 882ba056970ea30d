/* winograd.c - the kernel of winograd.h: what it takes, its blocks, its jobs among the threads. */
#include <omp.h>

#include "backends/direct/arith.h"
#include "winograd.h"

enum {
    MAX_CHANNELS = 1024,
    MAX_SIDE = 1 << 16,
    MAX_TILES = 24,
    ROWS = 6,
    /* dw, where blocks decide the order of sums, on every machine alike: floats of a block's
     * windows and tiles, for all threads; more tiles than that mean fewer passes over the sums. */
    BLOCK_BOTH = 9 << 16,
    MAX_TILES_DW = 256,
    MIN_TILES_DW = 32,
    /* Measured: from so many channels and tiles on it is faster than a direct convolution. */
    PAYS_CHANNELS = 32,
    PAYS_TILES = 64
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

static int takes(const adj_node *n)
{
    const adj_conv_geom *g = geom_of(n);
    return n->type.dtype == ADJ_F32 && n->in[0]->type.dtype == ADJ_F32 && g->format == ADJ_NHWC &&
           g->kh == 3 && g->kw == 3 && g->sh == 1 && g->sw == 1 && g->dh == 1 && g->dw == 1 &&
           g->groups == 1 && has_channels(g->ic) && has_channels(g->oc) && has_side(g->ih) &&
           has_side(g->iw) && has_side(g->oh) && has_side(g->ow) && has_side(g->n) &&
           g->pt <= MAX_SIDE && g->pl <= MAX_SIDE;
}

static int match(const adj_node *root, const adj_uses *uses, int max, const adj_node **group)
{
    if (!is_conv(root) || !takes(root))
        return 0;
    return direct_match_bias(root, uses, is_forward(root) ? max : max < 1 ? max : 1, group);
}

static int is_ours(const adj_group *g)
{
    return g->n_node == 1 || (g->n_node == 2 && is_forward(g->node[0]) &&
                              direct_is_bias_of(g->node[1], g->node[0]) && g->n_out == 1);
}

/* A tile's window begins pt rows before it; for dx, dy's begins 2 - pt rows before. */
static void set_sizes(winograd *p, const adj_conv_geom *g)
{
    p->n = g->n;
    direct_set_sizes(g, p->is_dx, &p->src, &p->dst);
    p->top = p->is_dx ? 2 - g->pt : g->pt;
    p->left = p->is_dx ? 2 - g->pl : g->pl;
    p->down = divide_up(p->dst.h, WINOGRAD_TILE);
    p->across = divide_up(p->dst.w, WINOGRAD_TILE);
    p->tiles = p->n * p->down * p->across;
    p->panels = divide_up(p->dst.c, WINOGRAD_PANEL);
}

/* Blocks of about equal size, as many for each thread; of whole row blocks of the product. */
static void set_blocks(winograd *p, ptrdiff_t second_cache)
{
    if (p->is_dw) {
        ptrdiff_t fit = BLOCK_BOTH / (WINOGRAD_POINTS * (p->src.c + p->dst.c));
        p->block = min(p->tiles, max(MIN_TILES_DW, min(fit, MAX_TILES_DW)));
    } else {
        /* half of it, which leaves room for the products */
        ptrdiff_t windows = second_cache / 2 / (ptrdiff_t)sizeof(float);
        ptrdiff_t fit = windows / (WINOGRAD_POINTS * p->src.c);
        ptrdiff_t fitting = fit < MAX_TILES ? MAX_TILES / 2 : MAX_TILES;
        ptrdiff_t rounds = divide_up(p->tiles, fitting * p->threads);
        p->block = divide_up(divide_up(p->tiles, rounds * p->threads), ROWS) * ROWS;
    }
    p->blocks = divide_up(p->tiles, p->block);
}

/* Points are a line of the cache apart from a power of two. 0: too large. */
static int set_scratch(winograd *p, size_t *scratch)
{
    const ptrdiff_t line = 16;
    ptrdiff_t pairs = p->src.c * p->dst.c;
    p->u_step = p->is_dw ? pairs + line : pairs;
    p->v_step = p->block * p->src.c + line;
    p->m_step = p->block * (p->is_dw ? p->dst.c : min(p->dst.c, WINOGRAD_PANEL)) + line;
    p->v = (size_t)(WINOGRAD_POINTS * p->u_step);
    p->thread = (size_t)(WINOGRAD_POINTS * (p->v_step + p->m_step));
    size_t buffers = p->is_dw ? 1 : (size_t)p->threads;
    return !__builtin_mul_overflow(p->thread, buffers, scratch) &&
           !__builtin_add_overflow(*scratch, p->v, scratch) &&
           !__builtin_mul_overflow(*scratch, sizeof(float), scratch);
}

/* Small vectors gain nothing over oneDNN; few tiles do not pay for the transformed filter. */
static int pays(const winograd *p, const direct *d)
{
    return d->isa != &direct_isa_base && p->src.c >= PAYS_CHANNELS && p->dst.c >= PAYS_CHANNELS &&
           p->tiles >= PAYS_TILES;
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *prep)
{
    const direct *d = backend;
    const adj_node *n = g->node[0];
    if (candidate > 0 || d->math != ADJ_MATH_FAST || !is_conv(n) || !is_ours(g))
        return ADJ_ENOKERNEL;
    if (!takes(n))
        return direct_refuse(
            prep,
            "%s: Winograd's algorithm takes f32 in NHWC, 3x3, stride 1, dilation 1, channels in "
            "multiples of %d up to %d",
            n->op->name, WINOGRAD_LANES, MAX_CHANNELS);
    winograd p = {.code = is_dw(n) ? d->isa->winograd_filter : d->isa->winograd_image,
                  .is_dx = is_dx(n),
                  .is_dw = is_dw(n),
                  .src_in = adj_group_in(g, n->in[is_dx(n) ? 1 : 0]),
                  .other_in = adj_group_in(g, n->in[is_dx(n) ? 0 : 1]),
                  .bias_in = g->n_node == 2 ? adj_group_in(g, g->node[1]->in[1]) : -1,
                  .threads = d->threads};
    set_sizes(&p, geom_of(n));
    set_blocks(&p, d->second_cache);
    if (!set_scratch(&p, &prep->scratch))
        return ADJ_ENOKERNEL;
    if (!pays(&p, d))
        prep->seconds *= 2; /* in any case slower than others that take it */
    return direct_accept(d, prep, "winograd", &p, sizeof p);
}

/* Called by each thread. */
static void run_image(const winograd *p, const adj_call *c)
{
#pragma omp for schedule(static)
    for (ptrdiff_t job = 0; job < p->src.c / WINOGRAD_LANES; job++)
        p->code->filter(p, c, job);
#pragma omp for schedule(static)
    for (ptrdiff_t block = 0; block < p->blocks; block++)
        p->code->block(p, c, block, omp_get_thread_num());
}

static void run_filter(const winograd *p, const adj_call *c)
{
    for (ptrdiff_t block = 0; block < p->blocks; block++) {
        ptrdiff_t tiles = winograd_tiles_in(p, block);
#pragma omp for schedule(static)
        for (ptrdiff_t job = 0; job < tiles; job++)
            p->code->tile(p, c, block, job);
#pragma omp for schedule(static)
        for (ptrdiff_t job = 0; job < WINOGRAD_POINTS * p->panels; job++)
            p->code->product(p, c, block, job);
    }
#pragma omp for schedule(static)
    for (ptrdiff_t job = 0; job < p->src.c / WINOGRAD_LANES; job++)
        p->code->result(p, c, job);
}

static adj_status run(const adj_call *c)
{
    const winograd *p = c->state;
#pragma omp parallel num_threads(p->threads) if (p->threads > 1)
    {
        if (p->is_dw)
            run_filter(p, c);
        else
            run_image(p, c);
    }
    return ADJ_OK;
}

const adj_kernel direct_winograd = {
    .name = "winograd", .match = match, .prepare = prepare, .run = run, .drop = direct_drop};
