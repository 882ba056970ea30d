/* rows.c - moves rows between memory and the caches; compiled per type as in grid.h. */
#include <stdint.h>

#include "backends/direct/arith.h"
#include "rows.h"

/* ---- elements: real, or bf16 when `half` ---- */

static size_t size_of(int half) { return half ? sizeof(uint16_t) : sizeof(real); }

/* Sets dst[i*m ..] to m copies of src[i]. */
ALWAYS void spread(const int half, const int m, ptrdiff_t n, real *restrict dst,
                   const void *restrict src)
{
    const uint16_t *h = src;
    const real *x = src;
    for (ptrdiff_t i = 0; i < n; i++) {
        real v = half ? (real)widen_bf16(h[i]) : x[i];
        for (int k = 0; k < m; k++)
            dst[i * m + k] = v;
    }
}

/* Sets dst[i] to the sum of m elements from src[i*m]. */
ALWAYS void gather(const int m, ptrdiff_t n, real *restrict dst, const real *restrict src)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        real sum = src[i * m];
        for (int k = 1; k < m; k++)
            sum += src[i * m + k];
        dst[i] = sum;
    }
}

ALWAYS void put(const int half, ptrdiff_t n, void *restrict dst, const real *restrict src)
{
    uint16_t *h = dst;
    real *x = dst;
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++) {
        if (half)
            h[i] = round_bf16((float)src[i]);
        else
            x[i] = src[i];
    }
}

/* Moves n elements, m = 1; frequent lengths need no call and no loop. */
ALWAYS void move(const int half, const int is_put, ptrdiff_t n, void *restrict dst,
                 const void *restrict src)
{
    if (is_put)
        put(half, n, dst, src);
    else
        spread(half, 1, n, dst, src);
}

ALWAYS void move_pixel(const int half, const int is_put, ptrdiff_t n, void *restrict dst,
                       const void *restrict src)
{
    switch (n) {
    case 8: move(half, is_put, 8, dst, src); break;
    case 16: move(half, is_put, 16, dst, src); break;
    case 32: move(half, is_put, 32, dst, src); break;
    case 64: move(half, is_put, 64, dst, src); break;
    default: move(half, is_put, n, dst, src); break;
    }
}

/* ---- prepared rows ---- */

/* Returns the offset of column `at` from the row's start, in elements. */
static ptrdiff_t place(const depthwise *d, const depthwise_chunk *c, ptrdiff_t at)
{
    ptrdiff_t column = at + d->pad;
    if (d->step == 1)
        return column * c->pitch;
    return (column % d->step * d->columns + column / d->step) * c->pitch;
}

/* Copies pixels; short ones LANES at a time, where later pixels overwrite the excess. */
ALWAYS void prepare_pixels(const int half, const int m, const depthwise_image *p, real *row,
                           const char *src)
{
    const depthwise *d = p->d;
    const depthwise_chunk *c = &p->chunk;
    ptrdiff_t count = min(d->src.w, d->step * d->columns - d->pad), n = c->valid / m;
    ptrdiff_t pixel = (ptrdiff_t)size_of(half) * d->src.c, i = 0;
    if (d->step == 1 && n == d->src.c && c->pitch == c->valid) {
        spread(half, m, count * n, row + place(d, c, 0), src);
        return;
    }
    ptrdiff_t ahead = d->step * ((DEPTHWISE_LANES + n - 1) / n);
    ptrdiff_t phase = d->pad % d->step, at = d->pad / d->step;
    int is_short = m == 1 && c->pitch < DEPTHWISE_LANES;
    for (; i < count; i++, src += pixel) {
        real *column = row + (phase * d->columns + at) * c->pitch;
        if (m > 1)
            spread(half, m, n, column, src);
        else
            move_pixel(half, 0, is_short && i + ahead < count ? DEPTHWISE_LANES : n, column, src);
        if (++phase == d->step) {
            phase = 0;
            at++;
        }
    }
}

ALWAYS void prepare_as(const int half, const depthwise_image *p, real *row, const char *src)
{
    int m = p->d->is_dx ? 1 : (int)p->d->multiplier;
    src += p->chunk.first / m * (ptrdiff_t)size_of(half);
    switch (m) {
    case 1: prepare_pixels(half, 1, p, row, src); break;
    case 2: prepare_pixels(half, 2, p, row, src); break;
    case 4: prepare_pixels(half, 4, p, row, src); break;
    case 8: prepare_pixels(half, 8, p, row, src); break;
    default: prepare_pixels(half, m, p, row, src); break;
    }
}

void TYPED(depthwise_begin)(depthwise_image *p, depthwise_chunk chunk, int clear)
{
    const depthwise *d = p->d;
    p->chunk = chunk;
    for (int i = 0; i < d->n_tap; i++)
        p->at[i] = d->in_place ? d->tap[i].at * d->src.c : place(d, &p->chunk, d->tap[i].at);
    if (clear && !d->in_place)
        row_ring_clear(&p->ring);
}

void TYPED(depthwise_begin_image)(depthwise_image *p, const adj_call *call, ptrdiff_t n)
{
    const depthwise *d = p->d;
    const ptrdiff_t first = n * d->src.h * d->src.w * d->src.c;
    p->src = (const char *)call->in[d->src_in] + tensor_bytes(d->dtype, first);
    row_ring_forget(&p->ring);
}

static const real *find_row(const depthwise_image *p, ptrdiff_t row)
{
    const depthwise *d = p->d;
    int half = d->dtype == ADJ_BF16;
    const char *src = p->src + tensor_bytes(d->dtype, row * d->src.w * d->src.c);
    if (d->in_place)
        return (const real *)(const void *)src + p->chunk.first;
    int is_cached;
    real *prepared = row_ring_slot(&p->ring, row % d->slots, row, &is_cached);
    if (!is_cached && half)
        prepare_as(1, p, prepared, src);
    else if (!is_cached)
        prepare_as(0, p, prepared, src);
    return prepared;
}

void TYPED(depthwise_look)(const depthwise_image *p, ptrdiff_t dst_row, depthwise_window *w)
{
    w->n = 0;
    for (ptrdiff_t kh = 0; kh < p->d->g.kh; kh++) {
        ptrdiff_t row = depthwise_src_row(p->d, dst_row, kh);
        if (row < 0)
            continue;
        w->x[w->n] = find_row(p, row);
        w->kh[w->n++] = kh;
    }
}

/* ---- rows of dy, y and dx ---- */

static void prefetch_pixels(const real *x, ptrdiff_t pixels, ptrdiff_t step, ptrdiff_t lanes)
{
    enum { LINE = 64 / sizeof(real) };
    if (lanes == step) { /* a whole row */
        lanes *= pixels;
        pixels = 1;
    }
    for (ptrdiff_t i = 0; i < pixels; i++)
        for (ptrdiff_t lane = 0; lane < lanes; lane += LINE)
            __builtin_prefetch(x + i * step + lane, 1);
}

void TYPED(depthwise_prefetch)(const depthwise_image *p, const real *dst, ptrdiff_t at)
{
    const depthwise *d = p->d;
    ptrdiff_t lanes = p->chunk.valid;
    if (at >= d->dst.h || !d->prefetches)
        return;
    if (dst != NULL)
        prefetch_pixels(dst + at * d->dst.w * d->dst.c + p->chunk.first, d->dst.w, d->dst.c, lanes);
    for (ptrdiff_t i = 0; d->in_place && i < d->g.sh && i < d->g.kh; i++) {
        ptrdiff_t row = depthwise_src_row(d, at, d->is_dx ? i : d->g.kh - 1 - i);
        if (row >= 0)
            prefetch_pixels((const real *)(const void *)p->src + row * d->src.w * d->src.c +
                                p->chunk.first,
                            d->src.w, d->src.c, lanes);
    }
}

void TYPED(depthwise_load)(const depthwise_image *p, real *dst, const void *dy)
{
    const depthwise *d = p->d;
    const depthwise_chunk *c = &p->chunk;
    const char *src = (const char *)dy + tensor_bytes(d->dtype, c->first);
    const ptrdiff_t pixel = tensor_bytes(d->dtype, d->dst.c);
    if (c->pitch == d->dst.c)
        load_reals(d->dtype, d->dst.w * d->dst.c, dst, src);
    else
        for (ptrdiff_t i = 0; i < d->dst.w; i++)
            load_reals(d->dtype, c->valid, dst + i * c->pitch, src + i * pixel);
}

ALWAYS void gather_pixels(const int m, const depthwise_image *p, ptrdiff_t pixels,
                          real *restrict dst, const real *restrict src)
{
    ptrdiff_t n = p->chunk.valid / m;
    if (p->chunk.pitch == p->chunk.valid)
        gather(m, pixels * n, dst, src);
    else
        for (ptrdiff_t i = 0; i < pixels; i++)
            gather(m, n, dst + i * n, src + i * p->chunk.pitch);
}

static void add_multiples(const depthwise_image *p, real *dst, const real *src)
{
    ptrdiff_t pixels = (p->d->dst.w + p->d->phases - 1) / p->d->phases;
    switch (p->d->multiplier) {
    case 2: gather_pixels(2, p, pixels, dst, src); break;
    case 4: gather_pixels(4, p, pixels, dst, src); break;
    case 8: gather_pixels(8, p, pixels, dst, src); break;
    default: gather_pixels((int)p->d->multiplier, p, pixels, dst, src); break;
    }
}

/* Stores n pixels; pitch: elements from a pixel to the next in rows. */
ALWAYS void store_pixels(const int half, const depthwise *d, char *dst, const real *rows,
                         ptrdiff_t pitch, ptrdiff_t n)
{
    ptrdiff_t i = 0, phase = 0, at = 0, pixel = d->dst.c * (ptrdiff_t)size_of(half);
    if (d->phases == 1 && n == d->dst.c && n == pitch) {
        put(half, d->dst.w * n, dst, rows);
        return;
    }
    int is_short = n < DEPTHWISE_LANES && n == d->dst.c;
    for (; i < d->dst.w; i++) {
        const real *src = rows + phase * d->buffer + at * pitch;
        int is_ahead = is_short && (d->dst.w - i) * n >= DEPTHWISE_LANES;
        move_pixel(half, 1, is_ahead ? DEPTHWISE_LANES : n, dst + i * pixel, src);
        if (++phase == d->phases) {
            phase = 0;
            at++;
        }
    }
}

void TYPED(depthwise_store)(const depthwise_image *p, ptrdiff_t row, char *dst, real *rows)
{
    const depthwise *d = p->d;
    ptrdiff_t m = d->is_dx ? d->multiplier : 1, pitch = p->chunk.pitch, n = p->chunk.valid / m;
    int half = d->dtype == ADJ_BF16;
    char *at = dst + tensor_bytes(d->dtype, row * d->dst.w * d->dst.c + p->chunk.first / m);
    if (m > 1) {
        for (ptrdiff_t phase = 0; phase < d->phases; phase++)
            add_multiples(p, rows + (d->phases + phase) * d->buffer, rows + phase * d->buffer);
        rows += d->phases * d->buffer;
        pitch = n;
    }
    if (half)
        store_pixels(1, d, at, rows, pitch, n);
    else
        store_pixels(0, d, at, rows, pitch, n);
}

/* ---- the grids of a row ---- */

void TYPED(depthwise_run_grids)(const depthwise_image *p, const depthwise_window *w,
                                const depthwise_run *r, grid *g)
{
    const depthwise *d = p->d;
    real *filter = g->w[0];
    ptrdiff_t tiled_width = p->chunk.tiled_width,
              step = d->in_place ? d->step * d->src.c : tiled_width;
    int taps = (int)(r->end_tap - r->tap);
    if (taps == 0)
        return;
    int max = grid_rows(taps < GRID_COLUMNS ? taps : GRID_COLUMNS);
    g->x_step = step;
    g->add = 0;
    for (int first = 0; first < w->n; first += g->rows) {
        g->rows = w->n - first < max ? w->n - first : max;
        for (int i = 0; i < g->rows; i++) {
            for (int line = 0; line < g->lines; line++)
                g->x[line][i] = w[line].x[first + i] + r->first * step;
            g->w[i] = filter + w->kh[first + i] * d->g.kw * tiled_width;
        }
        for (ptrdiff_t t = r->tap; t < r->end_tap; t += g->columns) {
            g->columns = (int)min(r->end_tap - t, GRID_COLUMNS);
            for (int k = 0; k < g->columns; k++) {
                g->x_at[k] = p->at[t + k];
                g->w_at[k] = d->tap[t + k].kw * tiled_width;
            }
            TYPED(depthwise_grid)(g);
            g->add = 1;
        }
    }
}
