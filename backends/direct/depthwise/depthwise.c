/* depthwise.c - the kernel of depthwise.h. Its geometry: the taps of a pixel, the chunks of
 * lanes, the preparation of rows, the layout of the scratch. The candidates are prepared rows
 * and rows read in place, the likely faster one first. */
#include "backends/direct/arith.h"
#include "depthwise.h"

enum {
    PACKED_WIDTH = 272,     /* longest tiled vector of a packed row */
    SLACK = DEPTHWISE_LANES /* elements after each buffer that loops may access */
};
static const ptrdiff_t max_per_thread = 1 << 24; /* elements of scratch */

depthwise_chunk depthwise_chunk_of(const depthwise *d, ptrdiff_t i)
{
    depthwise_chunk c = {.first = i * d->chunk, .valid = min(d->chunk, d->lanes - i * d->chunk)};
    c.pitch = d->packed ? d->lanes : round_up(c.valid, DEPTHWISE_LANES);
    c.tiled_width = d->packed ? lcm(d->lanes, DEPTHWISE_LANES) : c.pitch;
    return c;
}

/* Returns the pixels of a phase of dst. */
static ptrdiff_t pixels_of(const depthwise *d, ptrdiff_t phase)
{
    return divide_up(max(d->dst.w - phase, 0), d->phases);
}

/* y, dw:  column of x  = ow*sw + kw*dw - pl                        one phase, step sw dx:
 * column of dy = (iw + pl - kw*dw) / sw, if sw divides it  phase iw mod sw, step 1 */
static void set_columns(depthwise *d)
{
    const adj_conv_geom *g = &d->g;
    int n = 0;
    d->n_run = 0;
    for (ptrdiff_t phase = 0; phase < d->phases; phase++) {
        depthwise_run all = {.phase = phase, .end = pixels_of(d, phase), .tap = n};
        for (ptrdiff_t kw = 0; kw < g->kw; kw++) {
            ptrdiff_t up = phase + g->pl - kw * g->dw;
            if (!d->is_dx)
                d->tap[n++] = (depthwise_tap){kw, kw * g->dw - g->pl};
            else if (up % g->sw == 0)
                d->tap[n++] = (depthwise_tap){kw, up / g->sw};
        }
        all.end_tap = n;
        if (all.end > 0)
            d->run[d->n_run++] = all;
    }
    d->n_tap = n;
}

/* Cuts one run into pieces whose pixels have the same taps inside the image. */
static void cut(depthwise *d, depthwise_run all)
{
    for (ptrdiff_t first = all.first; first < all.end;) {
        depthwise_run r = {all.phase, first, all.end, all.end_tap, all.tap};
        for (ptrdiff_t t = all.tap; t < all.end_tap; t++) {
            ptrdiff_t at = d->tap[t].at;
            /* inside from pixel `enters` up to pixel `leaves` */
            ptrdiff_t enters = at >= 0 ? 0 : divide_up(-at, d->step);
            ptrdiff_t leaves = at >= d->src.w ? 0 : divide_up(d->src.w - at, d->step);
            if (first >= enters && first < leaves) {
                r.tap = min(r.tap, t);
                r.end_tap = max(r.end_tap, t + 1);
                r.end = min(r.end, leaves);
            } else if (first < enters && enters < leaves)
                r.end = min(r.end, enters);
        }
        if (r.end_tap < r.tap) /* none */
            r.tap = r.end_tap = all.tap;
        d->run[d->n_run++] = r;
        first = r.end;
    }
}

static void set_runs_in_place(depthwise *d)
{
    depthwise_run all[DEPTHWISE_STRIDE];
    int n = d->n_run;
    for (int i = 0; i < n; i++)
        all[i] = d->run[i];
    d->n_run = 0;
    for (int i = 0; i < n; i++)
        cut(d, all[i]);
}

/* Returns the number of lanes up to which pixels stay whole. Rows of whole pixels are
 * contiguous, which speeds up memory access, until a ring of them fills the second cache. Sums
 * of filter gradients, loaded and stored for each prepared row, should stay in the first cache. */
static ptrdiff_t max_whole(const depthwise *d)
{
    if (!d->is_dw)
        return 512;
    return d->in_place ? 256 : DEPTHWISE_CHUNK;
}

/* Sets chunks of whole channels in whole vectors, unless they would be far too large. */
static void set_chunks(depthwise *d)
{
    ptrdiff_t padded = round_up(d->lanes, DEPTHWISE_LANES);
    ptrdiff_t tiled_width = lcm(d->lanes, DEPTHWISE_LANES),
              unit = lcm(d->multiplier, DEPTHWISE_LANES);
    d->packed = padded > d->lanes + d->lanes / 10 && tiled_width <= PACKED_WIDTH;
    d->chunk = d->lanes;
    if (!d->packed && d->lanes > max_whole(d) && unit <= (ptrdiff_t)4 * DEPTHWISE_CHUNK) {
        ptrdiff_t wanted = divide_up(d->lanes, DEPTHWISE_CHUNK);
        d->chunk = min(d->lanes, round_up(divide_up(d->lanes, wanted), unit));
    }
    d->n_chunk = divide_up(d->lanes, d->chunk);
}

/* Returns 2 prepared rows if strides would load many sums for few pixels, or if a ring for two
 * stays in the first cache. If rows of dy are prepared too, 1. */
static int lines_at_once(const depthwise *d, ptrdiff_t slots_of_two)
{
    const ptrdiff_t max = 8 << 10; /* elements */
    if (d->in_place)
        return 4;
    if (d->dtype == ADJ_BF16 || d->packed || d->g.sh > 4)
        return 1;
    return d->g.sh > 1 || slots_of_two * d->row_size <= max ? 2 : 1;
}

static void set_rows(depthwise *d)
{
    const adj_conv_geom *g = &d->g;
    ptrdiff_t first = 0, last = 0, span = (g->kh - 1) * g->dh;
    depthwise_chunk c = depthwise_chunk_of(d, 0);
    for (int i = 0; i < d->n_run; i++)
        for (ptrdiff_t t = d->run[i].tap; t < d->run[i].end_tap; t++) {
            first = min(first, d->tap[t].at);
            last = max(last, d->tap[t].at + (d->run[i].end - 1) * d->step);
        }
    d->pad = -first;
    d->columns = divide_up(last + d->pad + 1, d->step);
    if (d->packed) /* zeros that loops read after a packed row */
        d->columns += divide_up(SLACK, c.pitch);
    d->row_size =
        d->in_place ? 0 : round_up(d->step * d->columns * c.pitch + SLACK, DEPTHWISE_LANES);
    d->lines_at_once = lines_at_once(d, span + 1 + g->sh);
    if (d->is_dw)
        span += (d->lines_at_once - 1) * g->sh;
    d->slots = min((d->is_dx ? span / g->sh : span) + 1, max(d->src.h, 1));
    d->buffer = round_up(pixels_of(d, 0) * c.pitch + SLACK, DEPTHWISE_LANES);
    d->weights = g->kh * g->kw * c.tiled_width;
}

/* True if software prefetching pays: hardware prefetches rows in memory order, unless the next
 * row is far away. */
static int is_worth_prefetching(const depthwise *d)
{
    const ptrdiff_t far = 6 << 20; /* approximate bytes of a third cache */
    return d->n_chunk > 1 || (d->lanes > DEPTHWISE_LANES && depthwise_is_beyond(d, far));
}

static void set_jobs(depthwise *d)
{
    ptrdiff_t rows = d->g.n * d->dst.h;
    d->work.jobs = min(direct_jobs_for(d->work.threads), rows * d->n_chunk);
    if (d->is_dw) {
        d->segments = min(divide_up(DEPTHWISE_SEGMENTS, d->n_chunk), max(rows, 1));
        d->work.jobs = d->segments * d->n_chunk;
    }
}

static int set_scratch(depthwise *d, size_t *scratch)
{
    size_t each = d->dtype == ADJ_F64 ? sizeof(double) : sizeof(float), thread = 0;
    ptrdiff_t rows = (d->is_dx && d->multiplier > 1 ? 2 : 1) * d->phases * d->buffer;
    if (d->slots * d->row_size > max_per_thread || rows > max_per_thread ||
        d->weights > max_per_thread)
        return 0;
    d->ring = reserve_ring(&thread, d->slots, d->row_size, each);
    d->rows = reserve(&thread, rows, each);
    d->sums = reserve(&thread, d->is_dw ? d->weights : 0, each);
    d->per_thread = thread;
    *scratch = 0;
    /* dw: sums of each job, in double; else weights of each chunk */
    d->filters = d->is_dw ? reserve(scratch, d->work.jobs * d->weights, sizeof(double))
                          : reserve(scratch, d->n_chunk * d->weights, each);
    d->thread = reserve(scratch, d->work.threads, d->per_thread);
    return 1;
}

static int fits(const adj_conv_geom *g)
{
    const int64_t max = 1 << 20;
    return direct_conv_fits(g, max) && g->dh <= max && g->dw <= max && g->kh <= DEPTHWISE_K &&
           g->kw <= DEPTHWISE_K && g->sh <= max && g->sw <= DEPTHWISE_STRIDE;
}

/* Sets everything but code and number of threads; returns 0 if the kernel does not support the
 * node. */
static int plan_geometry(depthwise *d, size_t *scratch)
{
    const adj_conv_geom *g = &d->g;
    if (!fits(g))
        return 0;
    d->lanes = g->oc;
    d->multiplier = g->oc / g->ic;
    direct_set_sizes(g, d->is_dx, &d->src, &d->dst);
    d->step = d->is_dx ? 1 : g->sw;
    d->phases = d->is_dx ? g->sw : 1;
    if (d->in_place && (d->dtype == ADJ_BF16 || d->lanes % DEPTHWISE_LANES != 0 ||
                        (!d->is_dx && d->multiplier > 1)))
        return 0;
    set_columns(d);
    set_chunks(d);
    set_rows(d);
    if (d->in_place)
        set_runs_in_place(d);
    set_jobs(d);
    d->prefetches = is_worth_prefetching(d);
    return set_scratch(d, scratch);
}

/* ---- the kernel ---- */

static int is_forward(const adj_node *n) { return n->op == &adj_op_depthwise_conv2d_native; }

static int is_dx(const adj_node *n)
{
    return n->op == &adj_op_depthwise_conv2d_native_backprop_input;
}

static int is_dw(const adj_node *n)
{
    return n->op == &adj_op_depthwise_conv2d_native_backprop_filter;
}

static int is_ours(const adj_group *g)
{
    const adj_node *n = g->node[0];
    return g->n_node == 1 && (is_forward(n) || is_dx(n) || is_dw(n)) &&
           (n->type.dtype == ADJ_F32 || n->type.dtype == ADJ_BF16 || n->type.dtype == ADJ_F64);
}

/* True if preparing rows does not pay: few windows read them, or it is a filter gradient, where
 * several rows in place share the loads of their sums, unless the rows come from outside the
 * caches. */
static int is_better_in_place(const depthwise *d)
{
    if (d->g.sw > 1 && !d->is_dx)
        return 1;
    if (d->is_dw)
        return !depthwise_is_beyond(d, (ptrdiff_t)4 << 20);
    return d->g.kh * d->g.kw <= 9 && d->lanes >= 64 && d->lanes <= 256;
}

static int plan(depthwise *d, const direct *backend, const adj_group *g, int candidate,
                size_t *scratch)
{
    const adj_node *n = g->node[0];
    const adj_conv_geom *geom = &((const adj_conv_attrs *)n->attrs)->geom;
    *d = (depthwise){.g = *geom, .dtype = n->type.dtype, .is_dx = is_dx(n), .is_dw = is_dw(n)};
    d->src_in = adj_group_in(g, n->in[d->is_dx ? 1 : 0]);
    d->other_in = adj_group_in(g, n->in[d->is_dx ? 0 : 1]);
    d->work.threads = direct_conv_threads(backend, n);
    const int is_f64 = d->dtype == ADJ_F64;
    d->work.code =
        d->is_dw ? backend->isa->depthwise_filter[is_f64] : backend->isa->depthwise_image[is_f64];
    depthwise other = *d;
    other.in_place = 1;
    size_t other_scratch = 0;
    int has_prepared = plan_geometry(d, scratch);
    int has_other = plan_geometry(&other, &other_scratch);
    int wants_other = candidate ^ (has_other && (!has_prepared || is_better_in_place(&other)));
    if (candidate >= has_prepared + has_other)
        return 0;
    if (wants_other) {
        *d = other;
        *scratch = other_scratch;
    }
    return 1;
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *prep)
{
    const direct *b = backend;
    depthwise d;
    if (!is_ours(g))
        return ADJ_ENOKERNEL;
    if (!plan(&d, b, g, candidate, &prep->scratch))
        return direct_refuse(prep, "%s: direct takes NHWC, kernels up to %dx%d, strides up to %d",
                             g->node[0]->op->name, DEPTHWISE_K, DEPTHWISE_K, DEPTHWISE_STRIDE);
    const char *impl = d.in_place ? "depthwise_in_place" : "depthwise_rows";
    return direct_accept(b, g, prep, impl, &d, sizeof d);
}

const adj_kernel direct_depthwise = {
    .name = "depthwise", .prepare = prepare, .run = direct_run, .drop = direct_drop};
