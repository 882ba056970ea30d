/* argmax_rows.c - the jobs of max_pool.h that write down where each window's first maximum
 * is, and the gradient that reads that, for windows that do not overlap.
 *
 * The argmax is a byte: i*kw + j for row i, column j of the window, pads included. */
#include <math.h>

#include "window.h"

static window numbered(const adj_conv_geom *g, span h, span w, ptrdiff_t oh, ptrdiff_t ow)
{
    window v = window_at(g, h, w);
    const ptrdiff_t i = h.begin - (oh * g->sh - g->pt), j = w.begin - (ow * g->sw - g->pl);
    v.number = (int32_t)(i * g->kw + j);
    v.number_row = (int32_t)g->kw;
    return v;
}

/* ---- windows of 2x2, a vector of channels at a time ----
 *
 * Vectors are spelled out: a loop that GCC vectorises takes as many channels at once as bytes fit a
 * vector, which few pools have. */

#if defined(ISA_avx512)
enum { LANES = 16 };
#elif defined(ISA_avx2)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif

typedef float floats __attribute__((vector_size(4 * LANES)));
typedef int32_t ints __attribute__((vector_size(4 * LANES)));
typedef uint32_t words __attribute__((vector_size(4 * LANES)));
typedef uint16_t halves __attribute__((vector_size(2 * LANES)));
typedef int16_t shorts __attribute__((vector_size(2 * LANES)));
typedef int8_t bytes __attribute__((vector_size(LANES)));
/* In memory, from any element on. GCC 14 for aarch64 crashes on arguments of such types. */
typedef floats stored_floats __attribute__((aligned(4), may_alias));
typedef halves stored_halves __attribute__((aligned(2), may_alias));
typedef bytes stored_bytes __attribute__((aligned(1), may_alias));

#ifdef MAX_POOL_BF16
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

/* As is_new_max: only a NaN is not at most infinity. */
static inline ints are_new_max(floats v, floats maximum)
{
    return ~(v <= maximum) & (maximum <= INFINITY);
}

static inline ints pick(ints first, ints a, ints b) { return (a & first) | (b & ~first); }

static inline floats choices(ints first, floats a, floats b)
{
    return (floats)pick(first, (ints)a, (ints)b);
}

/* The first channel of the vector after c: the last vector may reach back into the one before. */
static inline ptrdiff_t next_vector(ptrdiff_t c, ptrdiff_t channels)
{
    const ptrdiff_t next = c + LANES;
    return next < channels && next + LANES > channels ? channels - LANES : next;
}

/* Is it 2x2, nothing of it outside the image, and are there channels for a vector? */
static int is_whole_2x2(const adj_conv_geom *g, const window *v)
{
    return g->kh == 2 && g->kw == 2 && v->rows == 2 && v->columns == 2 && g->ic >= LANES;
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

/* Compared as bytes and then widened: GCC widens bytes from memory one by one. */
static inline floats where(bytes chosen, ints d)
{
    return (floats)(__builtin_convertvector(chosen, ints) & d);
}

/* dx = dy at the first maximum, 0 elsewhere. */
static void write_2x2(const window *v, const uint8_t *at, const T *dy, T *dx)
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

static void argmax_any(const window *v, ptrdiff_t channels, float floor, const T *x, T *restrict y,
                       uint8_t *restrict at)
{
    float maximum[MAX_POOL_CHUNK];
    int32_t number[MAX_POOL_CHUNK];
    find_first(v, channels, maximum, x, number);
#pragma omp simd
    for (ptrdiff_t c = 0; c < channels; c++) {
        y[c] = st(max(floor, maximum[c]));
        at[c] = (uint8_t)number[c];
    }
}

static void write_any(const window *v, ptrdiff_t channels, const uint8_t *restrict at,
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

/* ---- jobs: a row of windows ---- */

/* A row of windows. y that nobody wants goes to the thread's scratch. */
static void forward(const max_pool *p, const adj_call *call, ptrdiff_t job, int thread)
{
    const adj_conv_geom *g = &p->g;
    const ptrdiff_t oh = job % g->oh, step = p->y >= 0 ? g->ic : 0;
    const span h = rows_of(g, oh);
    const T *x = (const T *)call->in[p->x] + (job / g->oh * g->ih + h.begin) * g->iw * g->ic;
    T *y = p->y >= 0 ? (T *)call->out[p->y] + job * g->ow * g->ic
                     : (T *)call->scratch + thread * g->ic;
    uint8_t *at = (uint8_t *)call->out[p->argmax] + job * g->ow * g->ic;
    for (ptrdiff_t ow = 0; ow < g->ow; ow++, y += step, at += g->ic) {
        const span w = columns_of(g, ow);
        const window v = numbered(g, h, w, oh, ow);
        const T *corner = x + w.begin * g->ic;
        if (is_whole_2x2(g, &v))
            argmax_2x2(&v, p->floor, corner, y, at);
        else
            for (ptrdiff_t c = 0; c < g->ic; c += MAX_POOL_CHUNK)
                argmax_any(&v, chunk_from(g, c), p->floor, corner + c, y + c, at + c);
    }
}

/* The rows of dx from these windows' to the next ones'. */
static void backward(const max_pool *p, const adj_call *call, ptrdiff_t job, int thread)
{
    const adj_conv_geom *g = &p->g;
    const ptrdiff_t oh = job % g->oh, row = g->iw * g->ic;
    const span h = rows_of(g, oh);
    const ptrdiff_t next_h = oh + 1 < g->oh ? rows_of(g, oh + 1).begin : g->ih;
    const uint8_t *at = (const uint8_t *)call->in[p->argmax] + job * g->ow * g->ic;
    const T *dy = (const T *)call->in[p->dy] + job * g->ow * g->ic;
    T *dx = (T *)call->out[0] + (job / g->oh * g->ih + h.begin) * row;
    (void)thread;
    for (ptrdiff_t ow = 0; ow < g->ow; ow++, dy += g->ic, at += g->ic) {
        const span w = columns_of(g, ow);
        const window v = numbered(g, h, w, oh, ow);
        T *corner = dx + w.begin * g->ic;
        if (is_whole_2x2(g, &v))
            write_2x2(&v, at, dy, corner);
        else
            for (ptrdiff_t c = 0; c < g->ic; c += MAX_POOL_CHUNK)
                write_any(&v, chunk_from(g, c), at + c, dy + c, corner + c);
        clear_gap(g, v.rows, w, ow + 1 < g->ow ? columns_of(g, ow + 1).begin : g->iw, dx);
    }
    memset(dx + (h.end - h.begin) * row, 0, (size_t)((next_h - h.end) * row) * sizeof *dx);
}

const max_pool_argmax_code TYPED(max_pool_argmax) = {forward, backward};
