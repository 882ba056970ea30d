/* gemm.c - the kernel of gemm.h: the nodes it accepts, the partition of a product (its passes, the
 * rows that are computed together, the jobs of the threads, the layout of the scratch), and how it
 * runs. */
#include <math.h>
#include <omp.h>
#include <stdio.h>

#include "gemm.h"

enum {
    MAX_SIDE = 1 << 24,
    ROW_PIXELS = 96,    /* pixels of a flat row */
    CHUNK_PIXELS = 48,  /* pixels whose windows are gathered at a time */
    MIN_POSITIONS = 64, /* positions of a chunk while part of the filter is in its cache */
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
static const ptrdiff_t min_to_pack = 256 << 10;

/* ---- accepted nodes ---- */

static int is_dx(const adj_node *n) { return n->op == &adj_op_conv2d_backprop_input; }

static int is_root(const adj_node *n)
{
    return (n->op == &adj_op_conv2d || n->op == &adj_op_matmul || is_dx(n)) &&
           (n->type.dtype == ADJ_F32 || n->type.dtype == ADJ_F64);
}

/* True if matrices are multiplied without transposes. */
static int has_plain_operands(const adj_node *n)
{
    const adj_matmul_attrs *a = n->attrs;
    return n->op != &adj_op_matmul || (!a->transpose_a && !a->transpose_b);
}

static int match(const adj_node *root, const adj_uses *uses, int max, const adj_node **group)
{
    return is_root(root) && !is_dx(root) ? direct_match_bias(root, uses, max, group) : 0;
}

static int is_ours(const adj_group *g, direct_epilogue *e)
{
    const adj_node *n = g->node[0];
    return is_root(n) && direct_read_epilogue(g, e) && (g->n_node == 1 || !is_dx(n));
}

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
    const ptrdiff_t jobs = p->output_chunks * p->n * divide_up(rows, p->chunk.rows);
    return p->threads > 1 ? divide_up((ptrdiff_t)JOBS_OF_THREAD * p->threads, jobs) : 1;
}

static void share_outputs(gemm *p, ptrdiff_t rows)
{
    p->output_chunks = min(gemm_panels(p), times_as_many_jobs(p, rows));
}

/* Sets the jobs. Chunks of fewer rows read the filter more often, from the second cache if it
 * fits; portions of the outputs read src more often. */
static void set_jobs(gemm *p, ptrdiff_t rows, ptrdiff_t second_cache)
{
    const ptrdiff_t filter = p->filter.kh * p->filter.kw * p->src.c * p->dst.c;
    p->output_chunks = 1;
    if (p->is_gathered || filter * (ptrdiff_t)adj_dtype_size(p->dtype) > second_cache / 2)
        share_outputs(p, rows);
    while (p->chunk.rows > 1 && times_as_many_jobs(p, rows) > 1)
        p->chunk.rows = divide_up(p->chunk.rows, 2);
    if (p->output_chunks == 1)
        share_outputs(p, rows);
    p->chunk.n = divide_up(rows, p->chunk.rows);
    p->jobs = p->output_chunks * p->n * p->chunk.n;
}

/* Sets the number of rows computed together, and the rows of src that they read. */
static void set_rows(gemm *p, ptrdiff_t second_cache)
{
    const gemm_pass *first = &p->pass[0];
    ptrdiff_t rows = 1, right = 0;
    p->chunk.top = p->chunk.bottom = -MAX_SIDE;
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
        p->chunk.top = max(p->chunk.top, a->h.pad);
        p->chunk.bottom = max(p->chunk.bottom, (a->h.taps - 1) * a->h.dilation - a->h.pad);
        p->chunk.left = max(p->chunk.left, a->w.pad);
        right = max(right, conv_reach(&a->w, a->w.dst) - a->w.pad);
        p->has_margin |= conv_reaches_padding(&a->w);
    }
    const ptrdiff_t positions = p->is_gathered ? CHUNK_PIXELS : MIN_POSITIONS;
    p->chunk.rows = p->is_flat ? 1 : min(max(positions / first->w.dst, 1), rows);
    set_jobs(p, rows, second_cache);
    p->chunk.slots =
        max((p->chunk.rows - 1) * first->h.stride + p->chunk.top + p->chunk.bottom + 1, 0);
    p->chunk.row = p->has_margin ? (p->chunk.left + right) * p->src.c : 0;
}

/* Sets the slices: rows of taps, or single taps if columns are dilated. */
static void set_slices(gemm *p)
{
    for (int i = 0; i < p->n_pass; i++) {
        gemm_pass *a = &p->pass[i];
        a->slices = a->w.dilation == 1 ? min(a->w.taps, 1) : a->w.taps;
        a->depth = a->slices > 0 ? a->w.taps / a->slices * p->src.c : 0;
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
            (taps > 1 && positions >= min_to_pack / row));
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
    const ptrdiff_t positions = p->chunk.rows * p->pass[0].w.dst;
    const ptrdiff_t taps = p->filter.kh * p->filter.kw * p->src.c;
    size_t thread = 0;
    if (p->chunk.row > max_elements || p->chunk.slots > max_elements / max(p->chunk.row, 1) ||
        taps > max_elements / max(packed_outputs(p), 1) ||
        (p->is_gathered && positions > max_elements / taps) ||
        positions > max_elements / p->lanes ||
        (gemm_casts(p) && positions > max_elements / p->dst.c))
        return 0;
    p->scratch.ring = reserve_ring(&thread, p->chunk.slots, p->chunk.row, element);
    p->scratch.src_rows = reserve(&thread, p->chunk.slots, sizeof(void *));
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

/* Plans the group's product with its epilogue; sets prep->scratch. Returns 0 if gemm.h does not
 * support the group, or if it is too large. Requires: matrices are not transposed. */
static int plan(gemm *p, const direct *d, const adj_group *group, const direct_epilogue *epilogue,
                adj_prep *prep)
{
    const adj_node *n = group->node[0];
    const adj_conv_geom g =
        n->op == &adj_op_matmul ? geom_of_matmul(n) : ((const adj_conv_attrs *)n->attrs)->geom;
    if (!has_sizes(&g) || conv_passes(&g, is_dx(n)) > GEMM_PASSES)
        return 0;
    const int is_f64 = n->type.dtype == ADJ_F64;
    *p = (gemm){.code = d->isa->gemm[is_f64],
                .threads = direct_conv_threads(d, n),
                .is_turned = is_dx(n),
                .dtype = n->type.dtype,
                .src_in = adj_group_in(group, n->in[is_dx(n)]),
                .filter = {.in = adj_group_in(group, n->in[!is_dx(n)]), .kh = g.kh, .kw = g.kw},
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
    set_slices(p);
    const int is_prepared =
        !p->filter.by_reorder && (packed_outputs(p) > 0 || p->has_margin || p->is_gathered);
    p->filter.jobs =
        is_prepared ? min(GEMM_FILTER_JOBS, p->filter.kh * p->filter.kw * p->src.c) : 0;
    return set_scratch(p, &prep->scratch);
}

/* ---- a filter of y that is packed before it enters the kernel ----
 *
 * If it changes only when a parameter is set, a reorder packs it once for all runs. It holds the
 * panels of gemm.h, followed by one element: the sum of the filter's products with zero, which is
 * 0, or NaN if an element multiplied by padding is not finite. */

static int is_same(const void *of, const void *other)
{
    const gemm *a = of, *b = other;
    return a->dtype == b->dtype && a->filter.kh == b->filter.kh && a->filter.kw == b->filter.kw &&
           a->src.c == b->src.c && a->dst.c == b->dst.c && a->lanes == b->lanes &&
           a->vectors == b->vectors;
}

/* Returns the part of p that packing needs: the filter is the only operand, and the result
 * begins the scratch. */
static gemm of_filter(const gemm *p)
{
    return (gemm){
        .code = p->code,
        .threads = p->threads,
        .has_margin = 1, /* for the last element, the products with the padding's zeros */
        .dtype = p->dtype,
        .filter = {.is_packed = 1,
                   .kh = p->filter.kh,
                   .kw = p->filter.kw,
                   .jobs = min(GEMM_FILTER_JOBS, p->filter.kh * p->filter.kw * p->src.c)},
        .src.c = p->src.c,
        .dst.c = p->dst.c,
        .lanes = p->lanes,
        .vectors = p->vectors,
        .n_pass = 1,
        .pass[0] = {.h = p->pass[0].h, .w = p->pass[0].w, .elements = p->pass[0].elements}};
}

static ptrdiff_t packed_elements(const gemm *p)
{
    return p->pass[0].elements * round_up(p->dst.c, p->lanes);
}

static size_t bytes_of(const void *of)
{
    const gemm *p = of;
    return (size_t)(packed_elements(p) + 1) * adj_dtype_size(p->dtype);
}

static void pack(const void *of, const void *filter, void *packed)
{
    const gemm *p = of;
    const adj_call call = {.state = (void *)p, .in = &filter, .scratch = packed};
    int is_finite = 1;
#pragma omp parallel for schedule(static) num_threads(p->threads) if (p->threads > 1)            \
    reduction(& : is_finite)
    for (ptrdiff_t job = 0; job < p->filter.jobs; job++)
        is_finite &= p->code->prepare_filter(&call, job);
    adj_store(p->dtype, packed, packed_elements(p), is_finite ? 0 : NAN);
}

static const direct_packing packing = {sizeof(gemm), is_same, bytes_of, pack};

/* Returns NULL if out of memory. */
static const adj_layout *packed_filter(direct *d, const gemm *p)
{
    const gemm of = of_filter(p);
    char name[16];
    snprintf(name, sizeof name, "panels%dx%d", (int)p->vectors, (int)p->lanes);
    return direct_packed_filter(d, &packing, &of, name);
}

/* ---- the kernel ---- */

static adj_status run(const adj_call *c)
{
    const gemm *p = c->state;
    int is_finite = !p->filter.by_reorder || !(p->has_margin || p->is_gathered) ||
                    isfinite(adj_load(p->dtype, c->in[p->filter.in], packed_elements(p)));
    job_shares jobs;
    share_jobs(&jobs, p->jobs, p->threads);
#pragma omp parallel num_threads(p->threads) if (p->threads > 1)
    {
        if (p->filter.jobs > 0) { /* otherwise skips the loop and its barrier */
#pragma omp for schedule(static) reduction(& : is_finite)
            for (ptrdiff_t job = 0; job < p->filter.jobs; job++)
                is_finite &= p->code->prepare_filter(c, job);
        }
        for (job_range r; take_jobs(&jobs, omp_get_thread_num(), &r);)
            p->code->multiply(c, r, omp_get_thread_num(), is_finite);
    }
    return ADJ_OK;
}

/* Returns the bytes of the filter that each run packs. */
static double packed_bytes(const gemm *p)
{
    const ptrdiff_t filter = p->filter.kh * p->filter.kw * p->src.c * p->dst.c;
    return p->filter.jobs > 0 ? (double)(filter * (ptrdiff_t)adj_dtype_size(p->dtype)) : 0;
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *prep)
{
    direct *d = backend;
    gemm p;
    direct_epilogue epilogue;
    if (candidate > 0 || !is_ours(g, &epilogue))
        return ADJ_ENOKERNEL;
    if (!has_plain_operands(g->node[0]) || !plan(&p, d, g, &epilogue, prep))
        return direct_refuse(prep,
                             "%s: direct takes f32 and f64 in NHWC, without groups, untransposed "
                             "matrices, input gradients with up to %d phases of strides",
                             g->node[0]->op->name, GEMM_PASSES);
    const adj_status status = p.filter.by_reorder
                                  ? direct_accept_packed(d, g, prep, "gemm", &p, sizeof p,
                                                         p.filter.in, packed_filter(d, &p))
                                  : direct_accept(d, g, prep, "gemm", &p, sizeof p);
    direct_count_packed(prep, p.filter.by_reorder, packed_bytes(&p));
    return status;
}

const adj_kernel direct_gemm = {.name = "gemm",
                                .match = match,
                                .epilogue = direct_propose_epilogue,
                                .prepare = prepare,
                                .run = run,
                                .drop = direct_drop};
