/* im2col.c - the kernel of im2col.h. Its geometry: column tiles, rings, chunks, what lies where in
 * the scratch. */
#include "backends/direct/arith.h"
#include "im2col.h"

/* On every machine alike, whatever its caches: where tiles and chunks end decides the last bits. */
enum {
    RING = 96 << 10,          /* elements of a ring, about: part of the second cache */
    CHUNK = 8 << 10,          /* elements of a chunk of gathered pixels, about: the first cache */
    SLACK = 2 * IM2COL_LANES, /* elements behind each buffer that loops may read or write */
    MIN_CHUNK = 16,
    MAX_CHUNK = 128
};
static const ptrdiff_t max_elements = 1 << 24; /* of any part of the scratch */

static int fits(const adj_conv_geom *g)
{
    return direct_conv_fits(g, 1 << 16) && g->groups == 1 && g->ic <= IM2COL_CHANNELS &&
           g->n <= INT32_MAX && g->kh <= IM2COL_K && g->kw <= IM2COL_K &&
           (g->dh == 1 || g->kh == 1) && (g->dw == 1 || g->kw == 1) && g->sh <= IM2COL_STRIDE &&
           g->sw <= IM2COL_STRIDE;
}

/* A tile of c columns reads c/sw + planes + 1 pixels of dy at most. */
static int plan_dx(im2col *d, size_t *thread, size_t each)
{
    const adj_conv_geom *g = &d->g;
    d->slots = min(divide_up(g->kh, g->sh), max(g->oh, 1));
    d->planes = divide_up(g->kw, g->sw);
    ptrdiff_t room = max(RING / (d->slots * d->pitch), 4 * d->planes + 8);
    ptrdiff_t columns = room >= g->ow ? g->iw : (room - d->planes - 1) * g->sw;
    d->n_column_tile = max(divide_up(g->iw, max(columns, 1)), 1);
    d->column_tile = divide_up(g->iw, d->n_column_tile);
    d->pixels = min(g->ow, d->column_tile / g->sw + d->planes + 1);
    d->plane = round_up((d->column_tile + (d->planes + 2) * g->sw) * g->ic + d->span + SLACK,
                        IM2COL_LANES);
    d->row = d->pixels * d->pitch + SLACK;
    ptrdiff_t outputs = d->pixels * g->oc;
    if (d->slots * d->row > max_elements || outputs > max_elements ||
        d->planes * d->plane > max_elements)
        return 0;
    d->work.jobs = max(min(direct_jobs_for(d->work.threads), g->n * g->ih), 1);
    d->ring = reserve_ring(thread, d->slots, d->row, each);
    d->cols = reserve(thread, d->planes * d->plane, each);
    d->outputs = reserve(thread, d->dtype == ADJ_BF16 ? outputs : 0, each);
    d->sums = reserve(thread, d->dtype == ADJ_BF16 ? d->column_tile * g->ic + SLACK : 0, each);
    return 1;
}

static int plan_dw(im2col *d, size_t *thread, size_t each)
{
    const adj_conv_geom *g = &d->g;
    ptrdiff_t pixels = g->n * g->oh * g->ow;
    d->slots = g->kh + 1; /* the last is zeros */
    d->row =
        round_up((max(g->iw + g->pl, (g->ow - 1) * g->sw + g->kw)) * g->ic + SLACK, IM2COL_LANES);
    d->chunk = min(max(CHUNK / d->pitch, MIN_CHUNK), MAX_CHUNK);
    d->work.jobs = min(IM2COL_SEGMENTS, max(divide_up(pixels, d->chunk), 1));
    ptrdiff_t outputs = d->chunk * d->o_pitch, sums = d->pitch * d->o_pitch;
    if (d->slots * d->row > max_elements || outputs > max_elements ||
        d->work.jobs * sums > max_elements)
        return 0;
    d->ring = reserve_ring(thread, d->slots, d->row, each);
    d->cols = reserve(thread, d->chunk * d->pitch + SLACK, each);
    d->outputs = reserve(thread, outputs, each);
    d->sums = reserve(thread, sums, each);
    return 1;
}

/* Fills in what follows from g, dtype, is_dw and work.threads; 0: not for us. */
static int plan_geometry(im2col *d, ptrdiff_t vector_bytes, size_t *scratch)
{
    const adj_conv_geom *g = &d->g;
    if (!fits(g))
        return 0;
    size_t each = d->dtype == ADJ_F64 ? sizeof(double) : sizeof(float), thread = 0;
    const ptrdiff_t vector = vector_bytes / (ptrdiff_t)each;
    d->span = g->kw * g->ic;
    d->taps = g->kh * d->span;
    d->pitch = round_up(d->taps, vector);
    d->o_pitch = round_up(g->oc, vector);
    if (d->pitch * d->o_pitch > max_elements)
        return 0;
    int fine = d->is_dw ? plan_dw(d, &thread, each) : plan_dx(d, &thread, each);
    d->per_thread = thread;
    *scratch = 0;
    d->panels = reserve(scratch, d->is_dw ? 0 : d->pitch * g->oc, each);
    d->totals =
        reserve(scratch, d->is_dw ? d->work.jobs * d->taps * d->o_pitch : 0, sizeof(double));
    d->thread = reserve(scratch, d->work.threads, d->per_thread);
    return fine;
}

/* ---- the kernel ---- */

/* Of f32 filter gradients with AVX2 alone, for which filter_gemm takes 0.55 to 0.95 of the time
 * (Zen 3, 2026-11-28; not measured for 1x1): that comes first where it competes with oneDNN's. */
static const double after_filter_gemm = 1.1;

static int is_ours(const adj_group *g)
{
    const adj_node *n = g->node[0];
    int is_conv = n->op == &adj_op_conv2d_backprop_input || n->op == &adj_op_conv2d_backprop_filter;
    return g->n_node == 1 && is_conv &&
           (n->type.dtype == ADJ_F32 || n->type.dtype == ADJ_BF16 || n->type.dtype == ADJ_F64);
}

static int plan(im2col *d, const direct *backend, const adj_group *g, size_t *scratch)
{
    const adj_node *n = g->node[0];
    const adj_conv_geom *geom = &((const adj_conv_attrs *)n->attrs)->geom;
    *d = (im2col){
        .g = *geom, .dtype = n->type.dtype, .is_dw = n->op == &adj_op_conv2d_backprop_filter};
    d->dy_in = adj_group_in(g, n->in[1]);
    d->other_in = adj_group_in(g, n->in[0]);
    d->work.threads = direct_conv_threads(backend, n);
    const int is_f64 = d->dtype == ADJ_F64;
    d->work.code =
        d->is_dw ? backend->isa->im2col_filter[is_f64] : backend->isa->im2col_input[is_f64];
    return plan_geometry(d, backend->isa->vector_bytes, scratch);
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *prep)
{
    const direct *b = backend;
    im2col d;
    if (!is_ours(g) || candidate > 0)
        return ADJ_ENOKERNEL;
    if (!plan(&d, b, g, &prep->scratch))
        return direct_refuse(
            prep,
            "%s: direct takes NHWC, up to %d input channels, kernels up to %dx%d, strides up "
            "to %d, no groups, no dilation",
            g->node[0]->op->name, IM2COL_CHANNELS, IM2COL_K, IM2COL_K, IM2COL_STRIDE);
    /* oneDNN's filter gradient in bf16 takes half of the time (Zen 4, 2.6.3, 2026-11-26), and wins
     * this tie where a rule holds it back for filter_bf16. */
    if (d.is_dw && d.dtype == ADJ_BF16)
        prep->seconds *= direct_any_conv;
    if (d.is_dw && d.dtype == ADJ_F32 && b->isa == &direct_isa_avx2 && d.g.kh * d.g.kw > 1)
        prep->seconds *= after_filter_gemm;
    return direct_accept(b, g, prep, "im2col", &d, sizeof d);
}

const adj_kernel direct_im2col = {
    .name = "im2col", .prepare = prepare, .run = direct_run, .drop = direct_drop};
