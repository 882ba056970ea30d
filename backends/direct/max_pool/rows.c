/* rows.c - the jobs of max_pool.h, for f32 and bf16: forward, and the gradient from x or from the
 * argmax, a byte: i*kw + j for row i, column j of the window, pads included. */
#include <math.h>

#include "window.h"

/* ---- windows of 2x2, with channels in registers ---- */

static int is_2x2(const window *v) { return v->rows == 2 && v->columns == 2; }

static void maximum_2x2(const window *v, float floor, const T *restrict x, T *restrict y)
{
    const ptrdiff_t channels = v->pixel;
    const T *x1 = x + channels, *x2 = x + v->row, *x3 = x2 + channels;
#pragma omp simd
    for (ptrdiff_t c = 0; c < channels; c++) {
        float v0 = ld(x[c]), v1 = ld(x1[c]), v2 = ld(x2[c]), v3 = ld(x3[c]);
        y[c] = st_exact(max(floor, max(max(max(v0, v1), v2), v3)));
    }
}

/* ---- windows of 2x2 with their argmax, a vector of channels at a time ----
 *
 * Vectors are explicit: GCC would vectorize the loop for as many channels as bytes fit a vector,
 * which few pools have. */

typedef float floats __attribute__((vector_size(4 * VECTOR)));
typedef int32_t ints __attribute__((vector_size(4 * VECTOR)));
typedef uint32_t words __attribute__((vector_size(4 * VECTOR)));
typedef uint16_t halves __attribute__((vector_size(2 * VECTOR)));
typedef int16_t shorts __attribute__((vector_size(2 * VECTOR)));
typedef int8_t bytes __attribute__((vector_size(VECTOR)));
/* A vector in memory, which may be unaligned. GCC 14 for aarch64 crashes on arguments of such
 * types. */
typedef floats stored_floats __attribute__((aligned(4), may_alias));
typedef halves stored_halves __attribute__((aligned(2), may_alias));
typedef bytes stored_bytes __attribute__((aligned(1), may_alias));

#ifdef ELEM_bf16
static inline floats get(const T *x)
{
    return (floats)(__builtin_convertvector(*(const stored_halves *)x, words) << 16);
}

static inline void put(T *y, floats v)
{
    *(stored_halves *)y = __builtin_convertvector((words)v >> 16, halves);
}
#else
static inline floats get(const T *x) { return *(const stored_floats *)x; }
static inline void put(T *y, floats v) { *(stored_floats *)y = v; }
#endif

/* is_new_max for vectors: only a NaN is not at most infinity. */
static inline ints are_new_max(floats v, floats maximum)
{
    return ~(v <= maximum) & (maximum <= INFINITY);
}

static inline ints pick(ints first, ints a, ints b) { return (a & first) | (b & ~first); }

static inline floats choices(ints first, floats a, floats b)
{
    return (floats)pick(first, (ints)a, (ints)b);
}

/* Returns the first channel of the vector after c; the last vector may overlap the one before. */
static inline ptrdiff_t next_vector(ptrdiff_t c, ptrdiff_t channels)
{
    const ptrdiff_t next = c + VECTOR;
    return next < channels && next + VECTOR > channels ? channels - VECTOR : next;
}

/* True if the window is 2x2, completely inside the image, and the channels fill a vector. */
static int is_whole_2x2(const adj_conv_geom *g, const window *v)
{
    return g->kh == 2 && g->kw == 2 && v->rows == 2 && v->columns == 2 && g->ic >= VECTOR;
}

static void argmax_2x2(const window *v, float min, const T *x, T *y, uint8_t *at)
{
    const ptrdiff_t channels = v->pixel;
    const floats floor = min - (floats){0};
    for (ptrdiff_t c = 0; c < channels; c = next_vector(c, channels)) {
        floats m = get(x + c), v1 = get(x + channels + c);
        floats v2 = get(x + v->row + c), v3 = get(x + v->row + channels + c);
        ints is_new = are_new_max(v1, m), first = 1 & is_new;
        m = choices(is_new, v1, m);
        is_new = are_new_max(v2, m);
        first = pick(is_new, 2 - (ints){0}, first);
        m = choices(is_new, v2, m);
        is_new = are_new_max(v3, m);
        first = pick(is_new, 3 - (ints){0}, first);
        m = choices(is_new, v3, m);
        put(y + c, choices(are_new_max(m, floor), m, floor));
        *(stored_bytes *)(at + c) =
            __builtin_convertvector(__builtin_convertvector(first, shorts), bytes);
    }
}

/* Compares bytes and widens the result: GCC would widen bytes from memory one by one. */
static inline floats where(bytes chosen, ints d)
{
    return (floats)(__builtin_convertvector(chosen, ints) & d);
}

/* Sets dx to dy at the first maximum, to 0 elsewhere. */
static void write_argmax_2x2(const window *v, const uint8_t *at, const T *dy, T *dx)
{
    const ptrdiff_t channels = v->pixel;
    for (ptrdiff_t c = 0; c < channels; c = next_vector(c, channels)) {
        const ints d = (ints)(get(dy + c) + 0);
        const bytes first = *(const stored_bytes *)(at + c);
        put(dx + c, where(first == 0, d));
        put(dx + channels + c, where(first == 1, d));
        put(dx + v->row + c, where(first == 2, d));
        put(dx + v->row + channels + c, where(first == 3, d));
    }
}

/* ---- any window, with a chunk of channels in local arrays ---- */

static void take_max(ptrdiff_t channels, float *restrict maximum, const T *restrict x)
{
#pragma omp simd
    for (ptrdiff_t c = 0; c < channels; c++)
        maximum[c] = max(maximum[c], ld(x[c]));
}

static void add_where(ptrdiff_t channels, float *restrict dx, const float *restrict dy,
                      const int32_t *restrict at, int32_t pixel)
{
#pragma omp simd
    for (ptrdiff_t c = 0; c < channels; c++)
        dx[c] += blend(mask(at[c] == pixel), dy[c], 0);
}

static void maximum_any(const window *v, ptrdiff_t channels, float floor, const T *x, T *restrict y)
{
    float maximum[MAX_POOL_CHUNK];
    load(channels, maximum, x);
    for (ptrdiff_t i = 0; i < v->rows; i++)
        for (ptrdiff_t j = 0; j < v->columns; j++)
            take_max(channels, maximum, x + i * v->row + j * v->pixel);
#pragma omp simd
    for (ptrdiff_t c = 0; c < channels; c++)
        y[c] = st_exact(max(floor, maximum[c]));
}

static void argmax_any(const window *v, ptrdiff_t channels, float floor, const T *x, T *restrict y,
                       uint8_t *restrict at)
{
    float maximum[MAX_POOL_CHUNK];
    int32_t number[MAX_POOL_CHUNK];
    find_first(v, channels, maximum, x, number);
#pragma omp simd
    for (ptrdiff_t c = 0; c < channels; c++) {
        y[c] = st_exact(max(floor, maximum[c]));
        at[c] = (uint8_t)number[c];
    }
}

static void write_argmax_any(const window *v, ptrdiff_t channels, const uint8_t *restrict at,
                             const T *restrict dy, T *restrict dx)
{
    float d[MAX_POOL_CHUNK];
    int32_t number[MAX_POOL_CHUNK];
    load(channels, d, dy);
    for (ptrdiff_t c = 0; c < channels; c++)
        number[c] = at[c];
    for (ptrdiff_t i = 0; i < v->rows; i++)
        for (ptrdiff_t j = 0; j < v->columns; j++)
            write_where(channels, dx + i * v->row + j * v->pixel, d, number, number_of(v, i, j));
}

/* Returns the window with the position numbers that an argmax uses. */
static window numbered(const adj_conv_geom *g, span h, span w, ptrdiff_t oh, ptrdiff_t ow)
{
    window v = window_at(g, h, w);
    const ptrdiff_t i = h.begin - (oh * g->sh - g->pt), j = w.begin - (ow * g->sw - g->pl);
    v.number = (int32_t)(i * g->kw + j);
    v.number_row = (int32_t)g->kw;
    return v;
}

/* ---- jobs: a row of windows ---- */

static void maximum_of(const max_pool *p, const window *v, const T *x, T *y)
{
    if (is_2x2(v))
        maximum_2x2(v, p->floor, x, y);
    else
        for (ptrdiff_t c = 0; c < p->g.ic; c += MAX_POOL_CHUNK)
            maximum_any(v, chunk_from(&p->g, c), p->floor, x + c, y + c);
}

static void argmax_of(const max_pool *p, const window *v, const T *x, T *y, uint8_t *at)
{
    if (is_whole_2x2(&p->g, v))
        argmax_2x2(v, p->floor, x, y, at);
    else
        for (ptrdiff_t c = 0; c < p->g.ic; c += MAX_POOL_CHUNK)
            argmax_any(v, chunk_from(&p->g, c), p->floor, x + c, y + c, at + c);
}

static void write_argmax(const max_pool *p, const window *v, const uint8_t *at, const T *dy, T *dx)
{
    if (is_whole_2x2(&p->g, v))
        write_argmax_2x2(v, at, dy, dx);
    else
        for (ptrdiff_t c = 0; c < p->g.ic; c += MAX_POOL_CHUNK)
            write_argmax_any(v, chunk_from(&p->g, c), at + c, dy + c, dx + c);
}

/* Computes a row of windows; a y that is not needed goes to the thread's scratch. */
ALWAYS void forward(const int has_argmax, const adj_call *call, ptrdiff_t job, int thread)
{
    const max_pool *p = call->state;
    const adj_conv_geom *g = &p->g;
    const ptrdiff_t oh = job % g->oh, step = p->y >= 0 ? g->ic : 0, first = job * g->ow * g->ic;
    const span h = rows_of(g, oh);
    const T *x = (const T *)call->in[p->x] + (job / g->oh * g->ih + h.begin) * g->iw * g->ic;
    T *y = p->y >= 0 ? (T *)call->out[p->y] + first : (T *)call->scratch + thread * g->ic;
    uint8_t *at = has_argmax ? (uint8_t *)call->out[p->argmax] + first : NULL;
    for (ptrdiff_t ow = 0; ow < g->ow; ow++, y += step) {
        const span w = columns_of(g, ow);
        const window v = has_argmax ? numbered(g, h, w, oh, ow) : window_at(g, h, w);
        const T *corner = x + w.begin * g->ic;
        if (has_argmax)
            argmax_of(p, &v, corner, y, at + ow * g->ic);
        else
            maximum_of(p, &v, corner, y);
    }
}

/* Writes the rows of dx from these windows to the next ones. The first windows begin at row and
 * column 0, since pads are smaller than windows. */
static void backward_argmax(const adj_call *call, ptrdiff_t job, int thread)
{
    const max_pool *p = call->state;
    const adj_conv_geom *g = &p->g;
    const ptrdiff_t oh = job % g->oh, row = g->iw * g->ic, first = job * g->ow * g->ic;
    const span h = rows_of(g, oh);
    const ptrdiff_t next_h = oh + 1 < g->oh ? rows_of(g, oh + 1).begin : g->ih;
    const uint8_t *at = (const uint8_t *)call->in[p->argmax] + first;
    const T *dy = (const T *)call->in[p->dy] + first;
    T *dx = (T *)call->out[0] + (job / g->oh * g->ih + h.begin) * row;
    (void)thread;
    for (ptrdiff_t ow = 0; ow < g->ow; ow++, dy += g->ic, at += g->ic) {
        const span w = columns_of(g, ow);
        const window v = numbered(g, h, w, oh, ow);
        write_argmax(p, &v, at, dy, dx + w.begin * g->ic);
        clear_gap(g, v.rows, w, ow + 1 < g->ow ? columns_of(g, ow + 1).begin : g->iw, dx);
    }
    memset(dx + (h.end - h.begin) * row, 0, (size_t)((next_h - h.end) * row) * sizeof *dx);
}

static void forward_plain(const adj_call *c, ptrdiff_t job, int i) { forward(0, c, job, i); }
static void forward_argmax(const adj_call *c, ptrdiff_t job, int i) { forward(1, c, job, i); }

/* ---- jobs: a chunk of an image's channels, without the argmax ---- */

typedef struct {
    const max_pool *p;
    ptrdiff_t channels;
    float *sum; /* row ih of dx is in slot ih % slots; unused slots are 0 */
} ring;

static float *ring_row(const ring *r, ptrdiff_t ih)
{
    return r->sum + ih % r->p->slots * r->p->g.iw * r->channels;
}

/* Writes rows begin .. end of dx, which are complete, and clears their slots. */
static void store_rows(const ring *r, ptrdiff_t begin, ptrdiff_t end, T *dx)
{
    const adj_conv_geom *g = &r->p->g;
    for (ptrdiff_t ih = begin; ih < end; ih++) {
        float *sum = ring_row(r, ih);
        for (ptrdiff_t iw = 0; iw < g->iw; iw++) {
            T *restrict pixel = dx + (ih * g->iw + iw) * g->ic;
            const float *restrict s = sum + iw * r->channels;
#pragma omp simd
            for (ptrdiff_t c = 0; c < r->channels; c++)
                pixel[c] = st(s[c]);
        }
        memset(sum, 0, (size_t)(g->iw * r->channels) * sizeof *sum);
    }
}

/* Adds one row of windows; x points to the image's, dy to the row's first of the chunk's
 * channels. */
static void add_windows(const ring *r, span h, const T *x, const T *dy)
{
    const adj_conv_geom *g = &r->p->g;
    float d[MAX_POOL_CHUNK];
    int32_t at[MAX_POOL_CHUNK];
    for (ptrdiff_t ow = 0; ow < g->ow; ow++, dy += g->ic) {
        const span w = columns_of(g, ow);
        const window v = window_at(g, h, w);
        find_first(&v, r->channels, d, x + h.begin * v.row + w.begin * v.pixel, at);
        load(r->channels, d, dy);
        for (ptrdiff_t i = 0; i < v.rows; i++) {
            float *sum = ring_row(r, h.begin + i) + w.begin * r->channels;
            for (ptrdiff_t j = 0; j < v.columns; j++)
                add_where(r->channels, sum + j * r->channels, d, at, number_of(&v, i, j));
        }
    }
}

static void backward_plain(const adj_call *call, ptrdiff_t job, int thread)
{
    const max_pool *p = call->state;
    const adj_conv_geom *g = &p->g;
    const ptrdiff_t n = job / p->chunks, first = job % p->chunks * MAX_POOL_CHUNK;
    const ptrdiff_t offset = n * g->ih * g->iw * g->ic + first;
    const T *x = (const T *)call->in[p->x] + offset;
    const T *dy = (const T *)call->in[p->dy] + n * g->oh * g->ow * g->ic + first;
    T *dx = (T *)call->out[0] + offset;
    const ring r = {p, chunk_from(g, first), direct_scratch(call, (size_t)thread * p->ring)};
    ptrdiff_t done = 0;

    memset(r.sum, 0, p->ring);
    for (ptrdiff_t oh = 0; oh < g->oh; oh++) {
        const span h = rows_of(g, oh);
        store_rows(&r, done, h.begin, dx);
        done = h.begin;
        add_windows(&r, h, x, dy + oh * g->ow * g->ic);
    }
    store_rows(&r, done, g->ih, dx);
}

const max_pool_code TYPED(max_pool) = {{{.job = forward_plain}, {.job = forward_argmax}},
                                       {{.job = backward_plain}, {.job = backward_argmax}}};
