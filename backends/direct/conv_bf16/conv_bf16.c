/* conv_bf16.c - the kernel of conv_bf16.h: the nodes it accepts, its passes, and how the work is
 * partitioned. */
#include "conv_bf16.h"

#include <string.h>

#include "backends/direct/arith.h"
#include "backends/direct/epilogue.h"

enum {
    LANES = CONV_BF16_LANES,
    STEP = CONV_BF16_STEP,
    TILE = CONV_BF16_TILE,
    AHEAD = 3,               /* tiles read beyond the last one, since products take several */
    CHUNK_BYTES = 160 << 10, /* bytes of a chunk's scratch, about: part of the second cache */
    MIN_POSITIONS = 128,     /* positions of a chunk for which images are cut */
    JOBS = 64,               /* jobs that the chunks are distributed in, if there are as many */
    UNITS = 16               /* chunks wanted for the threads */
};

static int is_dx(const adj_node *n) { return n->op == &adj_op_conv2d_backprop_input; }

static int has_dtype(const adj_node *n, int is_f32_too)
{
    return n->type.dtype == ADJ_BF16 || (is_f32_too && n->type.dtype == ADJ_F32);
}

static int is_ours(const adj_group *g, adj_math math)
{
    const adj_node *n = g->node[0];
    if (!has_dtype(n, math == ADJ_MATH_FAST) || (n->op != &adj_op_conv2d && !is_dx(n)))
        return 0;
    return g->n_node == 1 || (g->n_node == 2 && n->op == &adj_op_conv2d && g->n_out == 1 &&
                              direct_is_bias_of(g->node[1], n));
}

static int match(const adj_node *root, const adj_uses *uses, int max, const adj_node **group)
{
    if (root->op != &adj_op_conv2d || !has_dtype(root, 1))
        return 0;
    return direct_match_bias(root, uses, max, group);
}

static void set_passes(conv_bf16 *p, const adj_conv_geom *g)
{
    p->n_pass = (int)conv_passes(g, p->is_turned);
    for (int i = 0; i < p->n_pass; i++) {
        const conv_axes a = conv_axes_of(g, p->is_turned, i);
        p->pass[i] = (conv_bf16_pass){.h = a.h, .w = a.w};
    }
}

/* ---- layout of a chunk in the scratch ---- */

/* True if windows must be unrolled: rows of 16 columns fill tiles, while unrolling costs a copy
 * for each tap. */
static int must_unroll(const conv_axis *w)
{
    const ptrdiff_t columns = round_up(w->dst, LANES);
    return w->taps == 1 || w->dilation > 1 || w->stride > CONV_BF16_STRIDE ||
           (columns - w->dst) * 8 > columns;
}

/* Sets the tile shapes. All have 16 rows of a step; for a segment's last step tile 6 is
 * narrower, and tile 7 has fewer rows. */
static void set_shapes(conv_bf16_pass *a)
{
    enum { PALETTE = 0, WIDTHS = 16, ROWS = 48, REST = 6 };
    memset(a->shapes, 0, sizeof a->shapes);
    a->shapes[PALETTE] = 1;
    for (int i = 0; i < 8; i++) {
        a->shapes[WIDTHS + 2 * i] = STEP; /* little endian */
        a->shapes[ROWS + i] = LANES;
    }
    if (a->rest > 0) {
        a->shapes[WIDTHS + 2 * REST] = (char)a->rest;
        a->shapes[ROWS + REST + 1] = (char)(a->rest / 4);
    }
}

static void set_segments(const conv_bf16 *p, conv_bf16_pass *a)
{
    a->segment = a->w.taps * p->channels * 2;
    a->whole = a->segment / STEP;
    a->rest = a->segment % STEP;
    a->steps = a->h.taps * divide_up(a->segment, STEP);
    a->has_padding = conv_reaches_padding(&a->h) || conv_reaches_padding(&a->w);
    a->is_unrolled = must_unroll(&a->w);
    const ptrdiff_t pixel = p->channels * 2;
    a->position = a->is_unrolled ? a->segment : a->w.stride * pixel;
    a->pitch = a->is_unrolled ? a->w.dst * a->position
                              : (round_up(a->w.dst, LANES) * a->w.stride + a->w.taps - 1) * pixel;
    set_shapes(a);
}

static void set_chunk(conv_bf16_pass *a, ptrdiff_t rows)
{
    rows = min(rows, a->h.dst);
    a->slots = divide_up(conv_reach(&a->h, max(rows, 1)), a->h.stride);
    a->lines = a->is_unrolled ? 1 : rows;
    a->line = divide_up(a->is_unrolled ? rows * a->w.dst : a->w.dst, LANES);
    for (ptrdiff_t i = 0; i < a->h.taps; i++)
        a->segment_at[i] = (int32_t)(conv_bf16_slot(a, i * a->h.dilation) * a->pitch);
}

static ptrdiff_t chunk_bytes(const conv_bf16_pass *a)
{
    return a->slots * a->h.stride * a->pitch + a->position * (AHEAD + 1) * LANES + TILE;
}

/* Partitions outputs if the filter would not stay in the cache from one chunk to the next. The
 * filter is read more often than the chunks, which are then copied for each group of outputs. */
static void set_groups(conv_bf16 *p, ptrdiff_t cache)
{
    ptrdiff_t block = 0;
    for (int i = 0; i < p->n_pass; i++)
        block += p->terms * p->pass[i].steps * TILE;
    p->groups = min(divide_up(p->blocks * block, max(cache, 1)), p->blocks);
    p->group = divide_up(p->blocks, max(p->groups, 1));
    p->groups = divide_up(p->blocks, p->group);
}

/* Cuts images if their scratch would be large, or if there are too few for the threads. */
static void set_chunks(conv_bf16 *p, ptrdiff_t second_cache)
{
    ptrdiff_t bytes = 1, rows = 0, positions = 0;
    for (int i = 0; i < p->n_pass; i++) {
        conv_bf16_pass *a = &p->pass[i];
        set_segments(p, a);
        bytes = max(bytes, p->terms * a->pitch * a->h.stride);
        rows = max(rows, a->h.dst);
        positions = max(positions, a->w.dst);
    }
    p->chunks = divide_up(rows, max(CHUNK_BYTES / bytes, 1));
    const ptrdiff_t wanted = divide_up(UNITS, p->n);
    p->chunks = max(p->chunks, min(wanted, rows * positions / MIN_POSITIONS));
    p->rows = max(divide_up(rows, max(p->chunks, 1)), 1);
    p->chunks = divide_up(rows, p->rows);
    set_groups(p, second_cache);
    p->units = p->n * p->chunks * p->groups;
    p->jobs = min(p->units, max(JOBS, p->threads));
    for (int i = 0; i < p->n_pass; i++)
        set_chunk(&p->pass[i], p->rows);
}

/* Lays out the scratch; returns 0 if offsets exceed 32 bits. */
static int set_scratch(conv_bf16 *p, size_t *scratch)
{
    size_t thread = 0;
    ptrdiff_t bytes = 0;
    *scratch = 0;
    for (int i = 0; i < p->n_pass; i++) {
        conv_bf16_pass *a = &p->pass[i];
        bytes = max(bytes, chunk_bytes(a));
        a->tiles = reserve(&thread, a->lines * a->line + AHEAD, sizeof(int32_t));
        a->dst = reserve(&thread, (a->lines * a->line + AHEAD) * LANES, sizeof(int32_t));
        a->filter = reserve(scratch, p->terms * p->blocks * a->steps, TILE);
    }
    if (p->terms > 1) {
        p->term = round_up(bytes, STEP);
        p->split = reserve(scratch, p->kh * p->kw * p->src.c * p->dst.c, (size_t)p->element);
    }
    p->image = reserve(&thread, p->term + bytes, 1);
    p->per_thread = thread;
    p->thread = reserve(scratch, p->threads, thread);
    return p->term + bytes < 1 << 30;
}

/* ---- the kernel ---- */

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *prep)
{
    const direct *b = backend;
    const adj_node *n = g->node[0];
    if (candidate > 0 || !is_ours(g, b->math))
        return ADJ_ENOKERNEL;
    const adj_conv_geom *geom = &((const adj_conv_attrs *)n->attrs)->geom;
    const int is_f32 = n->type.dtype == ADJ_F32;
    const char *type = is_f32 ? "f32 as bf16 terms" : "bf16";
    const ptrdiff_t element = (ptrdiff_t)adj_dtype_size(n->type.dtype);
    if (!b->has_amx)
        return direct_refuse(prep, "%s: direct's kernel in %s needs AMX", n->op->name, type);
    if (!conv_fits_bf16(geom, element, 1 << 12))
        return direct_refuse(prep,
                             "%s: direct takes %s in NHWC, kernels up to %dx%d, strides up to "
                             "%d, no groups",
                             n->op->name, type, CONV_BF16_KERNEL, CONV_BF16_KERNEL,
                             CONV_BF16_STRIDE);
    conv_bf16 p = {.is_turned = is_dx(n),
                   .src_in = adj_group_in(g, n->in[is_dx(n)]),
                   .filter_in = adj_group_in(g, n->in[!is_dx(n)]),
                   .bias_in = g->n_node == 2 ? adj_group_in(g, g->node[1]->in[1]) : -1,
                   .threads = direct_conv_threads(b, n),
                   .terms = is_f32 ? 2 : 1,
                   .element = element,
                   .n = geom->n,
                   .kh = geom->kh,
                   .kw = geom->kw};
    direct_set_sizes(geom, p.is_turned, &p.src, &p.dst);
    p.channels = round_up(p.src.c, 2);
    p.blocks = divide_up(p.dst.c, LANES);
    set_passes(&p, geom);
    set_chunks(&p, b->second_cache);
    if (!set_scratch(&p, &prep->scratch))
        return direct_refuse(prep, "%s: rows too long for direct", n->op->name);
    return direct_accept_as(b, g, prep, is_f32 ? "conv_bf16x3" : "conv_bf16", "amx", &p, sizeof p);
}

static adj_status run(const adj_call *c) { return conv_bf16_run_amx_avx512(c); }

const adj_kernel direct_conv_bf16 = {
    .name = "conv_bf16", .match = match, .prepare = prepare, .run = run, .drop = direct_drop};
