/* filter_bf16.c - the kernel of filter_bf16.h: the nodes it accepts, how the work is partitioned,
 * and which pixels the entries of a chunk's grid are. The partition is the same on every machine,
 * whatever its caches and number of threads, since the boundaries of chunks and segments affect the
 * last bits. */
#include "filter_bf16.h"

#include "backends/direct/arith.h"
#include "backends/direct/epilogue.h"

enum {
    LANES = FILTER_BF16_LANES,
    STEP = FILTER_BF16_STEP,
    ENTRY = FILTER_BF16_ENTRY,
    TILE = FILTER_BF16_TILE,
    GROUP_BYTES = 160 << 10, /* approximate bytes of a job's sums: they stay in the second cache */
    CHUNK_BYTES = 512 << 10, /* bytes of packed operands and sums together */
    MAX_PIXELS = 2048,       /* approximate pixels of a chunk */
    MIN_PIXELS = 256,        /* least pixels of a chunk that is cut to make more jobs */
    SEGMENT_BYTES = 1200 << 10, /* bytes of all segments' sums, which are added at the end */
    MAX_SEGMENTS = 16,
    PADDING = -1 /* entry of padding in lists of pixels */
};

/* Matches the gradient with the cast of its result to f32, the type of the sums. */
static int match(const adj_node *root, const adj_uses *uses, int max, const adj_node **group)
{
    const int n = direct_match_filter(root, uses, max, group);
    return n == 2 ? n : 0;
}

static int is_ours(const adj_group *g, adj_math math)
{
    const adj_node *n = g->node[0];
    if (n->op != &adj_op_conv2d_backprop_filter)
        return 0;
    const adj_dtype dtype = n->in[0]->type.dtype;
    if (dtype == ADJ_F32)
        return math == ADJ_MATH_FAST && g->n_node == 1;
    return dtype == ADJ_BF16 &&
           (g->n_node == 1 || (g->n_node == 2 && direct_is_widening(g->node[1])));
}

/* ---- the grid ---- */

/* Returns the positions of the grid where a phase of x has pixels. */
static conv_range pixels_of(const filter_bf16_axis *a, ptrdiff_t phase)
{
    conv_axis grid = a->a;
    grid.dst += a->shift;
    grid.dilation = 1;
    return conv_positions_inside(&grid, phase);
}

static void fill(int32_t *at, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++)
        at[i] = PADDING;
}

static void count_up(int32_t *restrict at, ptrdiff_t n, ptrdiff_t first, ptrdiff_t step)
{
    for (ptrdiff_t i = 0; i < n; i++)
        at[i] = (int32_t)(first + i * step);
}

ptrdiff_t filter_bf16_positions(const filter_bf16 *p, filter_bf16_chunk c)
{
    return ((c.images - 1) * p->h.pitch + c.rows - 1) * p->w.pitch + p->w.a.dst;
}

/* Returns the pixels of a dense row of dy, rounded up to pairs. */
static ptrdiff_t dense_row(const filter_bf16 *p) { return round_up(p->w.a.dst, 2); }

ptrdiff_t filter_bf16_steps(const filter_bf16 *p, filter_bf16_chunk c)
{
    const ptrdiff_t pixels =
        p->is_dense ? c.images * c.rows * dense_row(p) : filter_bf16_positions(p, c);
    return divide_up(pixels, FILTER_BF16_STEP);
}

/* Lists one pixel more than there are entries, since the last entry is a pair too. */
void filter_bf16_list_x(const filter_bf16 *p, filter_bf16_chunk c, filter_bf16_tap phase,
                        int32_t *at)
{
    const filter_bf16_axis *h = &p->h, *w = &p->w;
    const ptrdiff_t pixel = p->ic * p->element;
    const conv_range rows = pixels_of(h, phase.kh), columns = pixels_of(w, phase.kw);
    const ptrdiff_t left = columns.first, right = columns.end;
    const ptrdiff_t top = max(rows.first - c.row, 0);
    const ptrdiff_t bottom = min(rows.end - c.row, c.rows + h->shift);
    fill(at, p->entries + 1);
    for (ptrdiff_t i = 0; i < c.images; i++)
        for (ptrdiff_t r = top; r < bottom; r++) {
            ptrdiff_t ih = (c.row + r) * h->a.stride + phase.kh - h->a.pad;
            ptrdiff_t iw = left * w->a.stride + phase.kw - w->a.pad;
            count_up(at + (i * h->pitch + r) * w->pitch + left, right - left,
                     ((i * h->a.src + ih) * w->a.src + iw) * pixel, w->a.stride * pixel);
        }
}

void filter_bf16_list_dy(const filter_bf16 *p, filter_bf16_chunk c, int32_t *at)
{
    const filter_bf16_axis *h = &p->h, *w = &p->w;
    const ptrdiff_t pixel = p->oc * p->element;
    const ptrdiff_t pitch = p->is_dense ? dense_row(p) : w->pitch;
    const ptrdiff_t image = p->is_dense ? c.rows : h->pitch;
    fill(at, p->steps * FILTER_BF16_STEP);
    for (ptrdiff_t i = 0; i < c.images; i++)
        for (ptrdiff_t r = 0; r < c.rows; r++)
            count_up(at + (i * image + r) * pitch, w->a.dst,
                     (i * h->a.dst + c.row + r) * w->a.dst * pixel, pixel);
}

/* Positions after the last row, where dy is zero, reuse the first pair of x. */
void filter_bf16_list_pairs(const filter_bf16 *p, filter_bf16_chunk c, int32_t *at)
{
    const ptrdiff_t pairs = dense_row(p) / 2, all = p->steps * FILTER_BF16_STEP / 2;
    const ptrdiff_t entry = FILTER_BF16_ENTRY;
    ptrdiff_t n = 0;
    for (ptrdiff_t i = 0; i < c.images; i++)
        for (ptrdiff_t r = 0; r < c.rows; r++, n += pairs)
            count_up(at + n, pairs, (i * p->h.pitch + r) * p->w.pitch * entry, 2 * entry);
    for (; n < all; n++)
        at[n] = 0;
}

ptrdiff_t filter_bf16_list_tap(const filter_bf16 *p, filter_bf16_chunk c, filter_bf16_tap tap,
                               int32_t *x_at, int32_t *dy_at)
{
    const filter_bf16_axis *h = &p->h, *w = &p->w;
    const conv_range rows = conv_positions_inside(&h->a, tap.kh);
    const conv_range columns = conv_positions_inside(&w->a, tap.kw);
    const ptrdiff_t left = columns.first, right = columns.end;
    const ptrdiff_t top = max(rows.first, c.row), bottom = min(rows.end, c.row + c.rows);
    ptrdiff_t n = 0;
    fill(x_at, p->entries + 1);
    fill(dy_at, p->steps * FILTER_BF16_STEP);
    for (ptrdiff_t i = 0; i < c.images; i++)
        for (ptrdiff_t oh = top; oh < bottom && left < right; oh++) {
            ptrdiff_t ih = oh * h->a.stride + tap.kh * h->a.dilation - h->a.pad;
            ptrdiff_t iw = left * w->a.stride + tap.kw * w->a.dilation - w->a.pad;
            count_up(x_at + n, right - left,
                     ((i * h->a.src + ih) * w->a.src + iw) * p->ic * p->element,
                     w->a.stride * p->ic * p->element);
            count_up(dy_at + n, right - left,
                     ((i * h->a.dst + oh) * w->a.dst + left) * p->oc * p->element,
                     p->oc * p->element);
            n += right - left;
        }
    return n;
}

/* ---- partition of the work ---- */

/* Sets the pitch of the grid. Adjacent rows share padding: the position after one row's last
 * pixel is the one before the next row's first, both zeros. Returns how many phases of the axis
 * have taps. */
static ptrdiff_t set_pitch(filter_bf16_axis *a)
{
    ptrdiff_t phases = 0, first = PTRDIFF_MAX;
    a->shift = filter_bf16_shift(a, a->a.taps - 1);
    a->pitch = a->a.dst;
    for (ptrdiff_t phase = 0; phase < a->a.stride; phase++) {
        int is_used = 0;
        for (ptrdiff_t j = 0; j < a->a.taps; j++)
            is_used |= filter_bf16_phase(a, j) == phase;
        if (!is_used)
            continue;
        phases++;
        const conv_range pixels = pixels_of(a, phase);
        first = min(first, pixels.first);
        a->pitch = max(a->pitch, pixels.end);
    }
    a->pitch = max(a->pitch, a->a.dst + a->shift - first);
    return phases;
}

static void set_axes(filter_bf16 *p, const adj_conv_geom *g)
{
    const conv_axes a = conv_axes_of(g, 0, 0);
    p->h.a = a.h;
    p->w.a = a.w;
    p->phases = set_pitch(&p->h) * set_pitch(&p->w);
    p->shift = p->h.shift * p->w.pitch + p->w.shift;
    p->taps = g->kh * g->kw;
}

/* Returns blocks per group, as even as possible. */
static ptrdiff_t group_of(ptrdiff_t blocks, ptrdiff_t groups) { return divide_up(blocks, groups); }

static void set_groups(filter_bf16 *p)
{
    const ptrdiff_t inputs = divide_up(p->ic, LANES), outputs = divide_up(p->oc, LANES);
    ptrdiff_t in = 1, out = 1;
    while (p->taps * group_of(inputs, in) * group_of(outputs, out) * TILE > GROUP_BYTES) {
        if (group_of(inputs, in) == 1 && group_of(outputs, out) == 1)
            break;
        if (group_of(inputs, in) > group_of(outputs, out))
            in++;
        else
            out++;
    }
    p->inputs = group_of(inputs, in);
    p->outputs = group_of(outputs, out);
    p->input_groups = divide_up(inputs, p->inputs);
    p->output_groups = divide_up(outputs, p->outputs);
    p->columns = p->taps * p->inputs;
    p->sums_row = (p->columns + 1) * TILE;
}

/* Sets the pixels of a chunk (part of an image, or several images) and the number of segments. */
static void set_chunks(filter_bf16 *p)
{
    const filter_bf16_axis *h = &p->h, *w = &p->w;
    const ptrdiff_t groups = p->input_groups * p->output_groups;
    const ptrdiff_t pixel = p->terms * (p->phases * p->inputs * ENTRY + p->outputs * ENTRY / 2);
    const ptrdiff_t pixels = max(min(CHUNK_BYTES / pixel, MAX_PIXELS), MIN_PIXELS);
    const ptrdiff_t wanted = divide_up(MAX_SEGMENTS, p->n * groups);
    p->per_image = divide_up(h->a.dst, max(pixels / w->pitch, 1));
    p->per_image = max(p->per_image, min(wanted, h->a.dst * w->pitch / MIN_PIXELS));
    p->rows = divide_up(h->a.dst, p->per_image);
    p->per_image = divide_up(h->a.dst, p->rows);
    const ptrdiff_t units = p->n * p->per_image;
    const ptrdiff_t sums = groups * p->outputs * p->sums_row;
    p->segments = min(max(min(SEGMENT_BYTES / sums, MAX_SEGMENTS), 1), units);
    p->work.jobs = groups * p->segments;
    p->work.ends = groups * p->outputs * p->columns;
    const ptrdiff_t of_segment = divide_up(units, p->segments);
    const ptrdiff_t fit = p->per_image > 1 ? 1 : max(pixels / (h->pitch * w->pitch), 1);
    p->images = divide_up(of_segment, divide_up(of_segment, fit));
    const filter_bf16_chunk largest = {.images = p->images, .rows = p->rows};
    p->steps = filter_bf16_steps(p, largest);
    p->entries = round_up(max(filter_bf16_positions(p, largest), p->steps * STEP), STEP) + p->shift;
}

static void set_scratch(filter_bf16 *p, size_t *scratch)
{
    size_t thread = 0;
    p->x_at = reserve(&thread, p->entries + 1, sizeof(int32_t));
    p->dy_at = reserve(&thread, p->steps * STEP, sizeof(int32_t));
    p->pair_at = reserve(&thread, p->is_dense ? p->steps * STEP / 2 : 0, sizeof(int32_t));
    p->column = reserve(&thread, p->columns + 4, sizeof(filter_bf16_column));
    p->pairs = reserve(&thread, p->terms * p->phases * p->inputs * p->entries, ENTRY);
    p->tiles = reserve(&thread, p->terms * p->outputs * p->steps, TILE);
    if (p->terms > 1) {
        p->pairs_term = p->phases * p->inputs * p->entries * ENTRY;
        p->tiles_term = p->outputs * p->steps * TILE;
    }
    p->per_thread = thread;
    *scratch = 0;
    p->sums = reserve(scratch, p->work.jobs * p->outputs, (size_t)p->sums_row);
    p->thread = reserve(scratch, p->work.threads, thread);
}

/* ---- the kernel ---- */

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *prep)
{
    const direct *b = backend;
    const adj_node *n = g->node[0];
    if (candidate > 0 || !is_ours(g, b->math))
        return ADJ_ENOKERNEL;
    const adj_conv_geom *geom = &((const adj_conv_attrs *)n->attrs)->geom;
    const adj_dtype dtype = n->in[0]->type.dtype;
    const int is_f32 = dtype == ADJ_F32;
    const char *type = is_f32 ? "f32 as bf16 terms" : "bf16";
    const ptrdiff_t element = (ptrdiff_t)adj_dtype_size(dtype);
    if (!b->has_avx512_bf16 || (is_f32 && !b->has_amx))
        return direct_refuse(prep, "%s: products of %s need %s", n->op->name, type,
                             is_f32 ? "AMX" : "avx512_bf16 or AMX");
    if (!conv_fits_bf16(geom, element, 1 << 15))
        return direct_refuse(prep,
                             "%s: direct takes %s in NHWC, kernels up to %dx%d, strides up to "
                             "%d, no groups",
                             n->op->name, type, CONV_BF16_KERNEL, CONV_BF16_KERNEL,
                             CONV_BF16_STRIDE);
    filter_bf16 p = {
        .work = {.code = filter_bf16_code_avx512, .threads = direct_conv_threads(b, n)},
        .is_dense = !b->has_amx,
        .x_in = adj_group_in(g, n->in[0]),
        .dy_in = adj_group_in(g, n->in[1]),
        .dtype = g->out[0]->type.dtype,
        .terms = is_f32 ? 2 : 1,
        .element = element,
        .n = geom->n,
        .ic = geom->ic,
        .oc = geom->oc};
    set_axes(&p, geom);
    set_groups(&p);
    set_chunks(&p);
    set_scratch(&p, &prep->scratch);
    return direct_accept_as(b, g, prep, is_f32 ? "filter_bf16x3" : "filter_bf16",
                            b->has_amx ? "amx" : "avx512_bf16", &p, sizeof p);
}

const adj_kernel direct_filter_bf16 = {.name = "filter_bf16",
                                       .match = match,
                                       .prepare = prepare,
                                       .run = direct_run,
                                       .drop = direct_drop};
