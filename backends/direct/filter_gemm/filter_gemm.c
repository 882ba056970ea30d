/* filter_gemm.c - the kernel of filter_gemm.h: the nodes it accepts, and how the work is
 * partitioned. The partition depends on the instruction set alone, not on caches or the number
 * of threads, since the boundaries of chunks and segments affect the last bits. */
#include "filter_gemm.h"

#include "backends/direct/arith.h"

enum {
    MAX_SIDE = 1 << 20,
    CHUNK_BYTES = 16 << 10, /* bytes of a product's outputs in dy, about: half of the first cache */
    PANEL_CHUNK_BYTES = 8 << 10, /* bytes of outputs beside a panel of x: a quarter */
    PANEL_BYTES = 128,           /* bytes of a pixel in a panel: two cache lines */
    GROUP_BYTES = 256 << 10, /* approximate bytes of a job's sums: half of a small second cache */
    SEGMENT_BYTES = 2400 << 10, /* bytes of all segments' sums, which are added at the end */
    MAX_SEGMENTS = 16,
    MIN_PIXELS = 256,     /* pixels of a segment: fewer cost as much to add as to sum */
    MIN_JOBS = 8,         /* jobs, where segments are long enough */
    MAX_PIXEL_BYTES = 256 /* above this, dy is copied and x is cut into panels */
};
static const ptrdiff_t max_elements = 1 << 24; /* elements of each array in the scratch */

static int has_sizes(const adj_conv_geom *g)
{
    return direct_conv_has_sizes(g, MAX_SIDE) && g->kh <= max_elements / g->kw &&
           g->kh * g->kw <= max_elements / g->ic;
}

/* Sets the panels of x. Channels that do not fill whole panels are read in place, too. */
static void set_panels(filter_gemm *p, ptrdiff_t element)
{
    const ptrdiff_t panel = PANEL_BYTES / element;
    if (p->x.c * element > MAX_PIXEL_BYTES && p->x.c % panel == 0)
        p->panel = panel;
    p->panels = p->x.c / p->panel;
    p->elements /= p->panels;
}

/* Distributes the vectors of outputs evenly to groups whose sums stay in the second cache. */
static void set_groups(filter_gemm *p, ptrdiff_t element)
{
    const ptrdiff_t vectors = divide_up(p->y.c, p->lanes);
    const ptrdiff_t of_vector = p->elements * p->lanes * element;
    p->group = min(max(GROUP_BYTES / of_vector, 1), vectors);
    p->groups = divide_up(vectors, p->group);
    p->group = divide_up(vectors, p->groups);
    p->groups = divide_up(vectors, p->group);
}

static void set_chunks(filter_gemm *p, ptrdiff_t element)
{
    const ptrdiff_t vectors = min(p->group, FILTER_GEMM_VECTORS);
    const ptrdiff_t line = p->y.w * vectors * p->lanes * element;
    p->rows = min(max((p->panels > 1 ? PANEL_CHUNK_BYTES : CHUNK_BYTES) / line, 1), p->y.h);
    p->chunks = divide_up(p->y.h, p->rows);
    p->rows = divide_up(p->y.h, p->chunks);
    const ptrdiff_t sums = p->elements * p->panels * p->group * p->groups * p->lanes * element;
    p->segments = min(max(SEGMENT_BYTES / sums, 1), min(MAX_SEGMENTS, p->n * p->chunks));
    p->work.jobs = p->segments * p->groups * p->panels;
}

/* True if each position of dy reads exactly the same position of x. */
static int has_pixels(const conv_axis *a)
{
    return a->taps == 1 && a->stride == 1 && !conv_reaches_padding(a);
}

/* Sets segments of about equally many pixels, and as many groups of outputs as give threads
 * enough jobs. */
static void set_pixels(filter_gemm *p, ptrdiff_t element)
{
    const ptrdiff_t vectors = divide_up(p->y.c, p->lanes);
    const ptrdiff_t of_vector = p->elements * p->lanes * element;
    p->pixels = p->n * p->y.h * p->y.w;
    p->slices = p->slots = 1;
    p->depth = p->elements;
    p->segments = 1;
    while (p->segments < MAX_SEGMENTS && p->pixels >= 2 * p->segments * MIN_PIXELS &&
           2 * p->segments * vectors * of_vector <= SEGMENT_BYTES)
        p->segments *= 2;
    p->group = min(vectors * p->segments / MIN_JOBS, GROUP_BYTES / of_vector);
    p->group = min(max(p->group, FILTER_GEMM_VECTORS), vectors);
    p->groups = divide_up(vectors, p->group);
    p->work.jobs = p->segments * p->groups;
    p->chunk_pixels = CHUNK_BYTES / (FILTER_GEMM_VECTORS * p->lanes * element);
}

static void set_rows(filter_gemm *p)
{
    const conv_axis *h = &p->a.h, *w = &p->a.w;
    p->slices = w->dilation == 1 ? 1 : w->taps;
    p->depth = w->taps / p->slices * p->panel;
    p->slots = conv_reach(h, p->rows);
    p->has_margin = conv_reaches_padding(w);
    p->row = p->has_margin || p->panels > 1 ? conv_reach(w, p->y.w) * p->panel : 0;
    p->left = min(w->pad * p->panel, p->row);
}

/* Lays out the scratch; returns 0 if it is too large. */
static int set_scratch(filter_gemm *p, ptrdiff_t element, size_t *scratch)
{
    const ptrdiff_t line = p->group * p->lanes, product = FILTER_GEMM_VECTORS * p->lanes;
    const ptrdiff_t pixels = p->pixels > 0 ? p->chunk_pixels : p->rows * p->y.w; /* a chunk's */
    size_t thread = 0;
    if (p->row > max_elements || p->slots > max_elements / max(p->row, 1) ||
        p->elements > max_elements / line || pixels > max_elements / product)
        return 0;
    p->ring = reserve_ring(&thread, p->slots, p->row, (size_t)element);
    p->x_rows = reserve(&thread, p->slots, sizeof(void *));
    p->at = reserve(&thread, p->rows, sizeof(ptrdiff_t));
    p->packed = reserve(&thread, p->packs_dy ? pixels * product : 0, (size_t)element);
    p->per_thread = thread;
    *scratch = 0;
    p->sums = reserve(scratch, p->work.jobs * p->elements * line, (size_t)element);
    p->thread = reserve(scratch, p->work.threads, thread);
    return 1;
}

static int plan(filter_gemm *p, const direct *d, const adj_group *g, size_t *scratch)
{
    const adj_node *n = g->node[0];
    const adj_conv_geom *geom = &((const adj_conv_attrs *)n->attrs)->geom;
    const ptrdiff_t element = (ptrdiff_t)adj_dtype_size(n->type.dtype);
    if (!has_sizes(geom))
        return 0;
    *p = (filter_gemm){.work = {.code = d->isa->filter_gemm[n->type.dtype == ADJ_F64],
                                .ends = FILTER_GEMM_ENDS,
                                .threads = direct_conv_threads(d, n)},
                       .x_in = adj_group_in(g, n->in[0]),
                       .dy_in = adj_group_in(g, n->in[1]),
                       .n = geom->n,
                       .a = conv_axes_of(geom, 0, 0),
                       .lanes = d->isa->vector_bytes / element,
                       .elements = geom->kh * geom->kw * geom->ic};
    direct_set_sizes(geom, 0, &p->x, &p->y);
    p->panel = p->x.c;
    p->panels = 1;
    p->packs_dy = p->y.c % p->lanes != 0 || p->y.c * element > MAX_PIXEL_BYTES;
    if (has_pixels(&p->a.h) && has_pixels(&p->a.w))
        set_pixels(p, element);
    else {
        /* Pixels of this size share a quarter of the first cache's sets and are read for each
         * tap. */
        p->packs_dy |= p->y.c * element == MAX_PIXEL_BYTES;
        set_panels(p, element);
        set_groups(p, element);
        set_chunks(p, element);
        set_rows(p);
    }
    return set_scratch(p, element, scratch);
}

/* ---- the kernel ---- */

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *prep)
{
    const direct *d = backend;
    const adj_node *n = g->node[0];
    filter_gemm p;
    if (candidate > 0 || g->n_node != 1 || n->op != &adj_op_conv2d_backprop_filter ||
        (n->type.dtype != ADJ_F32 && n->type.dtype != ADJ_F64))
        return ADJ_ENOKERNEL;
    if (!plan(&p, d, g, &prep->scratch))
        return direct_refuse(prep, "%s: direct takes f32 and f64 in NHWC, without groups",
                             n->op->name);
    return direct_accept(d, g, prep, "filter_gemm", &p, sizeof p);
}

const adj_kernel direct_filter_gemm = {
    .name = "filter_gemm", .prepare = prepare, .run = direct_run, .drop = direct_drop};
