/* segment.c - the sums of filter_gemm.h: a job, over chunks of rows or of pixels. Compiled once per
 * instruction set and type. */
#include <string.h>

#include "backends/direct/micro_gemm.h"
#include "backends/direct/padded_rows.h"
#include "filter_gemm.h"

/* The approximate memory that the next chunk reads first, in elements; 0 for an operand that is
 * not prefetched. */
typedef struct {
    const real *x, *dy;
    ptrdiff_t of_x, of_dy;
} next_chunk;

typedef struct { /* a thread's state in a job */
    const filter_gemm *p;
    const real *x, *dy;        /* operands of the image; x: from the panel's first channel on */
    ptrdiff_t x_end, dy_end;   /* rows from the image's first to the tensor's end */
    ptrdiff_t output, outputs; /* first output of the group; how many it has */
    ptrdiff_t pitch;           /* pitch of the job's sums: outputs in whole vectors */
    const real **row;          /* rows of x, from first_row on */
    ptrdiff_t first_row;
    ptrdiff_t line; /* pixels of a row of dy */
    ptrdiff_t *at;
    real *packed, *sums;
    row_ring ring;
    next_chunk next;
} worker;

/* Some rows of an image's dy; b: its outputs from the first one of the group, or of a product,
 * on. */
typedef struct {
    ptrdiff_t first, end;
    const real *b;
    ptrdiff_t b_pitch;
} chunk;

/* Returns the rows of the chunk for which row i of taps reads x. */
static conv_range rows_of(const conv_axis *h, const chunk *b, ptrdiff_t i)
{
    const conv_range all = conv_positions_inside(h, i);
    return (conv_range){max(all.first, b->first), min(all.end, b->end)};
}

/* Returns the row of x that row i of taps reads for a row of dy, at its first column. */
static const real *row_at(const worker *s, ptrdiff_t row, ptrdiff_t i)
{
    const conv_axis *h = &s->p->a.h;
    return s->row[row * h->stride + i * h->dilation - h->pad - s->first_row];
}

/* Returns the group's outputs in vectors. */
static ptrdiff_t vectors_of(const worker *s) { return divide_up(s->outputs, VECTOR); }

/* Returns the vectors of a product's outputs. */
static ptrdiff_t product_vectors(const worker *s, ptrdiff_t vector)
{
    return min(vectors_of(s) - vector, FILTER_GEMM_VECTORS);
}

/* Returns the chunk with a product's outputs; if the plan says so, a copy of them in contiguous
 * memory, [pixel][vectors], with zeros in lanes after the last output. */
static chunk chunk_of_product(const worker *s, const chunk *of, ptrdiff_t vector)
{
    const ptrdiff_t pixels = (of->end - of->first) * s->line;
    const ptrdiff_t line = product_vectors(s, vector) * VECTOR;
    const ptrdiff_t n = min(s->outputs - vector * VECTOR, line);
    const real *src = of->b + vector * VECTOR;
    if (!s->p->packs_dy)
        return (chunk){of->first, of->end, src, of->b_pitch};
    for (ptrdiff_t i = 0; i < pixels; i++, src += of->b_pitch) {
        real *dst = s->packed + i * line;
        copy_reals(n, dst, src);
        if (n < line)
            memset(dst + n, 0, (size_t)(line - n) * sizeof *dst);
    }
    return (chunk){of->first, of->end, s->packed, line};
}

/* Makes the product prefetch chunk i of n of the elements. */
static void prefetch_chunk(micro_gemm *m, const real *at, ptrdiff_t elements, ptrdiff_t i,
                           ptrdiff_t n)
{
    const ptrdiff_t first = elements * i / n, end = elements * (i + 1) / n;
    m->prefetch = (const char *)(at + first);
    m->prefetch_bytes = divide_up((end - first) * (ptrdiff_t)sizeof(real), m->rows);
}

/* Makes product i of n prefetch its portion of the next chunk: of x, then of dy. A single product
 * reads memory in order anyway. */
static void prefetch_next(const next_chunk *b, ptrdiff_t i, ptrdiff_t n, micro_gemm *m)
{
    const ptrdiff_t all = b->of_x + b->of_dy;
    if (n <= 1 || all == 0)
        return;
    ptrdiff_t times_x = n * b->of_x / all;
    if (b->of_x > 0 && b->of_dy > 0)
        times_x = min(max(times_x, 1), n - 1);
    if (times_x > 0 && i < times_x)
        prefetch_chunk(m, b->x, b->of_x, i, times_x);
    else if (n > times_x)
        prefetch_chunk(m, b->dy, b->of_dy, i - times_x, n - times_x);
}

/* Returns the product for the outputs from a vector on and the sums of an element. */
static micro_gemm product(const worker *s, const chunk *b, ptrdiff_t vector, ptrdiff_t element)
{
    return (micro_gemm){.a_is_transposed = 1,
                        .a_pitch = s->p->a.w.stride * s->p->panel,
                        .vectors = product_vectors(s, vector),
                        .b = b->b,
                        .b_pitch = b->b_pitch,
                        .c = s->sums + element * s->pitch + vector * VECTOR,
                        .c_pitch = s->pitch,
                        .add = 1};
}

/* Adds slice k of row i of taps, over whole rows. */
static void add_slice(const worker *s, const chunk *all, ptrdiff_t vector, ptrdiff_t i, ptrdiff_t k)
{
    const filter_gemm *p = s->p;
    const conv_range b = rows_of(&p->a.h, all, i);
    if (b.first >= b.end)
        return;
    micro_gemm m = product(s, all, vector, (i * p->slices + k) * p->depth);
    m.rows = p->depth;
    m.depth = s->line;
    m.b += (b.first - all->first) * s->line * m.b_pitch;
    m.a = row_at(s, b.first, i) + k * p->a.w.dilation * p->panel;
    for (ptrdiff_t row = b.first + 1; row < b.end; row++)
        s->at[m.more++] = row_at(s, row, i) - row_at(s, b.first, i);
    m.more_at = s->at;
    /* Products of the same outputs; one that reads only padding skips its portion of
     * prefetching. */
    const ptrdiff_t slices = p->a.h.taps * p->slices;
    prefetch_next(&s->next, vector / FILTER_GEMM_VECTORS * slices + i * p->slices + k,
                  divide_up(vectors_of(s), FILTER_GEMM_VECTORS) * slices, &m);
    REAL_TYPED(micro_gemm)(&m);
}

static void add_chunk(const worker *s, const chunk *b, ptrdiff_t vector)
{
    const filter_gemm *p = s->p;
    for (ptrdiff_t i = 0; i < p->a.h.taps; i++)
        for (ptrdiff_t k = 0; k < p->slices; k++)
            add_slice(s, b, vector, i, k);
}

/* ---- chunks of dy with an Inf or NaN ---- */

/* Adds tap (i, j) for a row of dy. */
static void add_tap(const worker *s, const chunk *all, ptrdiff_t vector, ptrdiff_t row, ptrdiff_t i,
                    ptrdiff_t j)
{
    const filter_gemm *p = s->p;
    const conv_axis *w = &p->a.w;
    const conv_range columns = conv_positions_inside(w, j);
    if (columns.first >= columns.end)
        return;
    micro_gemm m = product(s, all, vector, (i * w->taps + j) * p->panel);
    m.rows = p->panel;
    m.depth = columns.end - columns.first;
    m.a = row_at(s, row, i) + (columns.first * w->stride + j * w->dilation) * p->panel;
    m.b += ((row - all->first) * p->y.w + columns.first) * m.b_pitch;
    REAL_TYPED(micro_gemm)(&m);
}

static void add_chunk_tap_by_tap(const worker *s, const chunk *all, ptrdiff_t vector)
{
    const filter_gemm *p = s->p;
    for (ptrdiff_t i = 0; i < p->a.h.taps; i++) {
        const conv_range b = rows_of(&p->a.h, all, i);
        for (ptrdiff_t row = b.first; row < b.end; row++)
            for (ptrdiff_t j = 0; j < p->a.w.taps; j++)
                add_tap(s, all, vector, row, i, j);
    }
}

/* ---- jobs ---- */

/* True if the group's outputs of these pixels of dy are finite. */
static int are_outputs_finite(const worker *s, const real *dy, ptrdiff_t pixels)
{
    if (s->outputs == s->p->y.c)
        return are_finite(dy, pixels * s->outputs);
    for (ptrdiff_t i = 0; i < pixels; i++)
        if (!are_finite(dy + i * s->p->y.c + s->output, s->outputs))
            return 0;
    return 1;
}

/* Finds the rows after this chunk, those of the next image after the last chunk. Panels of
 * channels and groups of outputs are not prefetched, since others would be loaded with them; nor
 * is x where windows skip rows. */
static next_chunk find_next(const worker *s, ptrdiff_t first, ptrdiff_t end)
{
    const filter_gemm *p = s->p;
    const conv_axis *h = &p->a.h;
    const ptrdiff_t line = p->x.w * p->x.c, dy_line = p->y.w * p->y.c;
    const ptrdiff_t row = min(max(s->first_row + conv_reach(h, end - first), 0), p->x.h);
    next_chunk b = {0};
    if (p->panels == 1 && h->stride <= conv_reach(h, 1)) {
        b.x = s->x + row * line;
        b.of_x = min((end - first) * h->stride, s->x_end - row) * line;
    }
    if (p->groups == 1) {
        b.dy = s->dy + end * dy_line;
        b.of_dy = min(end - first, s->dy_end - end) * dy_line;
    }
    return b;
}

/* Adds a chunk, one product's outputs after the other. */
static void add_products(const worker *s, const chunk *b, int is_finite)
{
    for (ptrdiff_t v = 0; v < vectors_of(s); v += FILTER_GEMM_VECTORS) {
        const chunk of_product = chunk_of_product(s, b, v);
        if (is_finite)
            add_chunk(s, &of_product, v);
        else
            add_chunk_tap_by_tap(s, &of_product, v);
    }
}

static void add_rows(worker *s, ptrdiff_t first, ptrdiff_t end)
{
    const filter_gemm *p = s->p;
    const conv_axis *h = &p->a.h;
    const padded_rows rows = {.height = p->x.h,
                              .line = p->x.w * p->x.c,
                              .left = p->left,
                              .row = p->row,
                              .pixel = p->x.c,
                              .panel = p->panels > 1 ? p->panel : 0};
    const ptrdiff_t pixels = (end - first) * p->y.w;
    const real *dy = s->dy + first * p->y.w * p->y.c;
    const chunk b = {first, end, dy + s->output, p->y.c};
    s->first_row = first * h->stride - h->pad;
    find_padded_rows(&rows, &s->ring, s->x, s->first_row, s->first_row + conv_reach(h, end - first),
                     s->row);
    s->next = find_next(s, first, end);
    const int is_finite = !p->has_margin || are_outputs_finite(s, dy, pixels);
    add_products(s, &b, is_finite);
}

/* Adds a segment of the chunks of all images. */
static void add_images(worker *s, const adj_call *call, ptrdiff_t segment, ptrdiff_t channel)
{
    const filter_gemm *p = s->p;
    const ptrdiff_t units = p->n * p->chunks, first = units * segment / p->segments;
    const ptrdiff_t end = units * (segment + 1) / p->segments;
    s->line = p->y.w;
    for (ptrdiff_t i = first; i < end; i++) {
        const ptrdiff_t image = i / p->chunks, row = i % p->chunks * p->rows;
        if (i == first || row == 0) {
            s->x = (const real *)call->in[p->x_in] + image * p->x.h * p->x.w * p->x.c + channel;
            s->dy = (const real *)call->in[p->dy_in] + image * p->y.h * p->y.w * p->y.c;
            s->x_end = (p->n - image) * p->x.h;
            s->dy_end = (p->n - image) * p->y.h;
            row_ring_forget(&s->ring);
        }
        add_rows(s, row, min(row + p->rows, p->y.h));
    }
}

/* Adds a segment of a 1x1 convolution's pixels; each chunk is one row. Other groups' outputs are
 * not prefetched. */
static void add_pixels(worker *s, const adj_call *call, ptrdiff_t segment)
{
    const filter_gemm *p = s->p;
    const real *x = call->in[p->x_in], *dy = call->in[p->dy_in];
    const ptrdiff_t first = p->pixels * segment / p->segments;
    const ptrdiff_t n = p->pixels * (segment + 1) / p->segments - first;
    const ptrdiff_t chunks = divide_up(n, p->chunk_pixels);
    for (ptrdiff_t i = 0; i < chunks; i++) {
        const ptrdiff_t at = first + n * i / chunks, end = first + n * (i + 1) / chunks;
        const ptrdiff_t next = min(2 * end - at, p->pixels) - end;
        s->row[0] = x + at * p->x.c;
        s->line = end - at;
        s->next = (next_chunk){.x = x + end * p->x.c, .of_x = next * p->x.c};
        if (p->groups == 1) {
            s->next.dy = dy + end * p->y.c;
            s->next.of_dy = next * p->y.c;
        }
        add_products(s, &(chunk){0, 1, dy + at * p->y.c + s->output, p->y.c}, 1);
    }
}

static void add(const adj_call *call, ptrdiff_t job, int thread)
{
    const filter_gemm *p = call->state;
    char *own = direct_scratch(call, p->thread + p->per_thread * (size_t)thread);
    const ptrdiff_t segment = job % p->segments, panel = job / p->segments % p->panels;
    const ptrdiff_t group = job / (p->segments * p->panels), pitch = p->group * VECTOR;
    worker s = {.p = p,
                .output = group * pitch,
                .outputs = min(p->y.c - group * pitch, pitch),
                .pitch = pitch,
                .row = (const real **)(own + p->x_rows),
                .at = (ptrdiff_t *)(own + p->at),
                .packed = (real *)(own + p->packed),
                .sums = (real *)direct_scratch(call, p->sums) + job * p->elements * pitch,
                .ring = row_ring_at(own + p->ring, p->slots, p->row)};
    memset(s.sums, 0, (size_t)(p->elements * pitch) * sizeof *s.sums);
    if (p->pixels > 0)
        add_pixels(&s, call, segment);
    else
        add_images(&s, call, segment, panel * p->panel);
}

/* Adds a vector of outputs of an element over all segments. */
static void add_vector(const filter_gemm *p, const real *sums, real *dst, ptrdiff_t n)
{
    const ptrdiff_t segment = p->elements * p->group * VECTOR;
    double total[VECTOR] = {0};
    for (ptrdiff_t k = 0; k < p->segments; k++)
        for (ptrdiff_t o = 0; o < VECTOR; o++)
            total[o] += (double)sums[k * segment + o];
    for (ptrdiff_t o = 0; o < n; o++)
        dst[o] = (real)total[o];
}

static void add_up(const adj_call *call, ptrdiff_t job)
{
    const filter_gemm *p = call->state;
    const ptrdiff_t elements = p->elements * p->panels, pitch = p->group * VECTOR;
    const ptrdiff_t end = elements * (job + 1) / FILTER_GEMM_ENDS;
    for (ptrdiff_t e = elements * job / FILTER_GEMM_ENDS; e < end; e++) {
        const ptrdiff_t panel = e % p->x.c / p->panel;
        const ptrdiff_t at = e / p->x.c * p->panel + e % p->panel; /* index in the panel */
        for (ptrdiff_t o = 0; o < p->y.c; o += VECTOR) {
            const ptrdiff_t job = (o / pitch * p->panels + panel) * p->segments;
            const real *sums = (const real *)direct_scratch(call, p->sums) +
                               (job * p->elements + at) * pitch + o % pitch;
            add_vector(p, sums, (real *)call->out[0] + e * p->y.c + o, min(p->y.c - o, VECTOR));
        }
    }
}

const direct_code TYPED(filter_gemm) = {.job = add, .end = add_up};
