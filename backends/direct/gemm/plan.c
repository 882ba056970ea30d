/* plan.c - the partition of a product of gemm.h: its passes, the rows that are computed
 * together, the jobs of the threads, the layout of the scratch. */
#include "gemm.h"

enum {
    MAX_SIDE = 1 << 24,
    ROW_PIXELS = 96,    /* pixels of a flat row */
    BAND_PIXELS = 48,   /* pixels whose windows are gathered at a time */
    MIN_POSITIONS = 64, /* positions of a band while part of the filter is in its cache */
    SHORT_ROW = 6,      /* gathering is faster for rows of fewer positions */
    MAX_VECTORS = 4,    /* vectors of a panel */
    JOBS_OF_THREAD = 4,
    PACKED_POSITIONS = 2048 /* positions from which on the cost of packing is small */
};
static const ptrdiff_t max_elements = 1 << 24; /* elements of each array in the scratch */
/* Elements of rows whose results are cast, in each thread's scratch: a second cache's worth. The
 * same on every machine, as it affects which values are rounded. */
static const ptrdiff_t max_cast = 1 << 18;
/* Positions times bytes of a filter's row, from which on prior packing pays: long rows share a
 * few sets of the first cache, and y reads a row for each element of a window. 1x1 filters are
 * slower packed. */
static const ptrdiff_t packed_bytes = 256 << 10;

/* ---- geometry ---- */

static adj_conv_geom geom_of_matmul(const adj_node *n)
{
    const adj_shape a = n->in[0]->type.shape;
    return (adj_conv_geom){.format = ADJ_NHWC,
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

static int has_sizes(const adj_conv_geom *g)
{
    return direct_conv_has_sizes(g, MAX_SIDE) && g->kh <= max_elements / g->kw &&
           g->kh * g->kw <= max_elements / g->ic && g->kh * g->kw <= max_elements / g->oc;
}

/* Splits all pixels into rows of about ROW_PIXELS, equally many for each thread. A few pixels
 * stay one row, whose outputs are distributed to threads (set_jobs): reading the filter then
 * dominates, and it is read once. */
static void flatten(gemm *p)
{
    p->pixels = p->n * p->dst.h * p->dst.w;
    ptrdiff_t rows = divide_up(p->pixels, ROW_PIXELS);
    if (rows > 1 || p->dst.c < MAX_VECTORS * p->lanes * p->threads)
        rows = min(round_up(rows, p->threads), p->pixels);
    p->dst.w = p->src.w = divide_up(p->pixels, rows);
    p->dst.h = p->src.h = divide_up(p->pixels, p->dst.w);
    p->n = 1;
    p->pass[0].h.src = p->pass[0].h.dst = p->dst.h;
    p->pass[0].w.src = p->pass[0].w.dst = p->dst.w;
}

static void set_passes(gemm *p, const adj_conv_geom *g)
{
    p->n_pass = (int)conv_passes(g, p->is_turned);
    for (int i = 0; i < p->n_pass; i++) {
        const conv_axes a = conv_axes_of(g, p->is_turned, i);
        p->pass[i] = (gemm_pass){.h = a.h, .w = a.w, .elements = a.h.taps * a.w.taps * p->src.c};
    }
    p->is_flat = g->kh == 1 && g->kw == 1 && g->sh == 1 && g->sw == 1 && g->pt == 0 && g->pl == 0 &&
                 g->oh == g->ih && g->ow == g->iw;
    if (p->is_flat)
        flatten(p);
}

/* Returns the vectors of a block: more positions in a block reduce reads of the filter, more
 * vectors those of src. */
static ptrdiff_t vectors_for(ptrdiff_t positions)
{
    return positions > 8 ? 2 : positions > 6 ? 3 : MAX_VECTORS;
}

/* ---- distribution to threads ---- */

/* Returns the factor on the number of jobs that lets a thread on a slower processor do fewer
 * than others; rows: of an image. */
static ptrdiff_t times_as_many_jobs(const gemm *p, ptrdiff_t rows)
{
    const ptrdiff_t jobs = p->shares * p->n * divide_up(rows, p->band.rows);
    return p->threads > 1 ? divide_up((ptrdiff_t)JOBS_OF_THREAD * p->threads, jobs) : 1;
}

static void share_outputs(gemm *p, ptrdiff_t rows)
{
    p->shares = min(gemm_panels(p), times_as_many_jobs(p, rows));
}

/* Sets the jobs. Bands of fewer rows read the filter more often, from the second cache if it
 * fits; portions of the outputs read src more often. */
static void set_jobs(gemm *p, ptrdiff_t rows, ptrdiff_t second_cache)
{
    const ptrdiff_t filter = p->filter.kh * p->filter.kw * p->src.c * p->dst.c;
    p->shares = 1;
    if (p->is_gathered || filter * (ptrdiff_t)adj_dtype_size(p->dtype) > second_cache / 2)
        share_outputs(p, rows);
    while (p->band.rows > 1 && times_as_many_jobs(p, rows) > 1)
        p->band.rows = divide_up(p->band.rows, 2);
    if (p->shares == 1)
        share_outputs(p, rows);
    p->band.n = divide_up(rows, p->band.rows);
    p->jobs = p->shares * p->n * p->band.n;
}

/* Sets the number of rows computed together, and the rows of src that they read. */
static void set_rows(gemm *p, ptrdiff_t second_cache)
{
    const gemm_pass *first = &p->pass[0];
    ptrdiff_t rows = 1, right = 0;
    p->band.top = p->band.bottom = -MAX_SIDE;
    p->is_gathered = p->n_pass == 1 && !p->is_flat && p->filter.kh * p->filter.kw > 1 &&
                     first->w.dst < SHORT_ROW;
    /* for flat rows, whose length depends on the threads, uses all pixels: a layout may depend
     * on it */
    p->vectors = p->is_gathered ? 2 : vectors_for(p->is_flat ? p->pixels : first->w.dst);
    for (int i = 0; i < p->n_pass; i++) {
        const gemm_pass *a = &p->pass[i];
        rows = max(rows, a->h.dst);
        if (a->h.taps == 0 || a->w.taps == 0)
            continue;
        p->band.top = max(p->band.top, a->h.pad);
        p->band.bottom = max(p->band.bottom, (a->h.taps - 1) * a->h.dilation - a->h.pad);
        p->band.left = max(p->band.left, a->w.pad);
        right = max(right, conv_reach(&a->w, a->w.dst) - a->w.pad);
        p->has_margin |= conv_reaches_padding(&a->w);
    }
    const ptrdiff_t positions = p->is_gathered ? BAND_PIXELS : MIN_POSITIONS;
    p->band.rows = p->is_flat ? 1 : min(max(positions / first->w.dst, 1), rows);
    set_jobs(p, rows, second_cache);
    p->band.slots = max((p->band.rows - 1) * first->h.stride + p->band.top + p->band.bottom + 1, 0);
    p->band.row = p->has_margin ? (p->band.left + right) * p->src.c : 0;
}

/* Sets the parts: rows of taps, or single taps if columns are dilated. */
static void set_parts(gemm *p)
{
    for (int i = 0; i < p->n_pass; i++) {
        gemm_pass *a = &p->pass[i];
        a->parts = a->w.dilation == 1 ? min(a->w.taps, 1) : a->w.taps;
        a->depth = a->parts > 0 ? a->w.taps / a->parts * p->src.c : 0;
    }
}

static int packs_filter(const gemm *p)
{
    const ptrdiff_t positions = p->n * p->dst.h * p->dst.w, taps = p->filter.kh * p->filter.kw;
    const ptrdiff_t row = p->dst.c * (ptrdiff_t)adj_dtype_size(p->dtype);
    if (p->is_turned)
        return 1;
    return taps * p->src.c <= max_elements / (p->dst.c + p->lanes) &&
           (p->filter.by_reorder || positions >= PACKED_POSITIONS ||
            (taps > 1 && positions >= packed_bytes / row));
}

/* Returns the packed outputs in whole vectors: all of them, or those that do not fill one. */
static ptrdiff_t packed_outputs(const gemm *p)
{
    if (p->filter.is_packed)
        return round_up(p->dst.c, p->lanes);
    return p->dst.c % p->lanes > 0 ? p->lanes : 0;
}

/* Lays out the scratch; returns 0 if it is too large. */
static int set_scratch(gemm *p, size_t *scratch)
{
    const size_t element = adj_dtype_size(p->dtype);
    const ptrdiff_t positions = p->band.rows * p->pass[0].w.dst;
    const ptrdiff_t taps = p->filter.kh * p->filter.kw * p->src.c;
    size_t thread = 0;
    if (p->band.row > max_elements || p->band.slots > max_elements / max(p->band.row, 1) ||
        taps > max_elements / max(packed_outputs(p), 1) ||
        (p->is_gathered && positions > max_elements / taps) ||
        positions > max_elements / p->lanes ||
        (gemm_casts(p) && positions > max_elements / p->dst.c))
        return 0;
    p->scratch.ring = reserve_ring(&thread, p->band.slots, p->band.row, element);
    p->scratch.src_rows = reserve(&thread, p->band.slots, sizeof(void *));
    p->scratch.windows = reserve(&thread, p->is_gathered ? positions * taps : 0, element);
    p->scratch.at = reserve(&thread, p->filter.kh * p->filter.kw, sizeof(ptrdiff_t));
    p->scratch.sums = reserve(&thread, positions * p->lanes, element);
    p->scratch.cast = reserve(&thread, gemm_casts(p) ? positions * p->dst.c : 0, element);
    p->scratch.per_thread = thread;
    *scratch = 0;
    for (int i = 0; i < p->n_pass; i++) {
        gemm_pass *a = &p->pass[i];
        a->filter =
            reserve(scratch, p->filter.by_reorder ? 0 : a->elements * packed_outputs(p), element);
    }
    p->scratch.thread = reserve(scratch, p->threads, thread);
    return 1;
}

int gemm_plan(gemm *p, const direct *d, const adj_group *group, const direct_epilogue *epilogue,
              adj_prep *prep)
{
    const adj_node *n = group->node[0];
    const int is_dx = n->op == &adj_op_conv2d_backprop_input;
    const adj_conv_geom g =
        n->op == &adj_op_matmul ? geom_of_matmul(n) : ((const adj_conv_attrs *)n->attrs)->geom;
    if (!has_sizes(&g) || conv_passes(&g, is_dx) > GEMM_PASSES)
        return 0;
    const int is_f64 = n->type.dtype == ADJ_F64;
    *p = (gemm){.code = d->isa->gemm[is_f64],
                .threads = direct_conv_threads(d, n),
                .is_turned = is_dx,
                .dtype = n->type.dtype,
                .src_in = adj_group_in(group, n->in[is_dx]),
                .filter = {.in = adj_group_in(group, n->in[!is_dx]), .kh = g.kh, .kw = g.kw},
                .epilogue = *epilogue,
                .n = g.n};
    direct_set_sizes(&g, p->is_turned, &p->src, &p->dst);
    p->lanes = d->isa->vector_bytes / (ptrdiff_t)adj_dtype_size(p->dtype);
    p->filter.by_reorder = !p->is_turned && direct_packs_once(group, prep, p->filter.in);
    p->filter.is_packed = packs_filter(p);
    p->filter.by_reorder &= p->filter.is_packed;
    set_passes(p, &g);
    if (gemm_casts(p) && max(p->is_flat ? 0 : g.ow, ROW_PIXELS) > max_cast / p->dst.c)
        return 0;
    set_rows(p, d->second_cache);
    set_parts(p);
    const int is_prepared =
        !p->filter.by_reorder && (packed_outputs(p) > 0 || p->has_margin || p->is_gathered);
    p->filter.jobs =
        is_prepared ? min(GEMM_FILTER_JOBS, p->filter.kh * p->filter.kw * p->src.c) : 0;
    return set_scratch(p, &prep->scratch);
}
