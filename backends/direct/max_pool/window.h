/* window.h - windows, and loops over the channels of a pixel; for f32 and bf16.
 *
 * A maximum of bf16 values is one of them, so only the sums of overlapping windows are rounded. */
#ifndef DIRECT_MAX_POOL_WINDOW_H
#define DIRECT_MAX_POOL_WINDOW_H

#include "backends/direct/element.h"
#include "max_pool.h"

/* Stores a float that was loaded as T, which needs no rounding. */
#ifdef ELEM_bf16
static inline T st_exact(float v) { return (T)(bits_of(v) >> 16); }
#else
static inline T st_exact(float v) { return v; }
#endif

typedef struct {
    ptrdiff_t begin, end; /* begin <= i < end */
} span;

/* The input positions inside window o: o*stride - pad and the k - 1 after it. */
static inline span window_of(ptrdiff_t o, ptrdiff_t stride, ptrdiff_t pad, ptrdiff_t k,
                             ptrdiff_t in)
{
    ptrdiff_t begin = o * stride - pad, end = begin + k;
    return (span){begin > 0 ? begin : 0, end < in ? end : in};
}

static inline span rows_of(const adj_conv_geom *g, ptrdiff_t oh)
{
    return window_of(oh, g->sh, g->pt, g->kh, g->ih);
}

static inline span columns_of(const adj_conv_geom *g, ptrdiff_t ow)
{
    return window_of(ow, g->sw, g->pl, g->kw, g->iw);
}

typedef struct { /* the part of a window inside the image */
    ptrdiff_t rows, columns;
    ptrdiff_t row, pixel;       /* elements from one row, one pixel, to the next */
    int32_t number, number_row; /* first pixel; step from row to row; 1 along a row */
} window;

static inline window window_at(const adj_conv_geom *g, span h, span w)
{
    return (window){.rows = h.end - h.begin,
                    .columns = w.end - w.begin,
                    .row = g->iw * g->ic,
                    .pixel = g->ic,
                    .number_row = (int32_t)(w.end - w.begin)};
}

/* Returns a condition as a mask, 0 or -1, for bitwise selects: with ?: GCC makes branches of
 * several comparisons and does not vectorize. */
static inline int32_t mask(int condition) { return -(int32_t)(condition & 1); }

static inline float blend(int32_t first, float a, float b)
{
    return float_of((bits_of(a) & (uint32_t)first) | (bits_of(b) & ~(uint32_t)first));
}

/* True if v is a new first maximum: larger, or a NaN if the maximum is none. */
static inline int32_t is_new_max(float v, float maximum)
{
    return mask(!(v <= maximum) & (maximum == maximum));
}

static inline float max(float maximum, float v)
{
    return blend(is_new_max(v, maximum), v, maximum);
}

/* Returns the sum of one element; naive starts at +0 as well, so -0 becomes +0. */
static inline float summed(float dy) { return 0 + dy; }

/* ---- a chunk of channels ---- */

static inline void load(ptrdiff_t channels, float *restrict y, const T *restrict x)
{
#pragma omp simd
    for (ptrdiff_t c = 0; c < channels; c++)
        y[c] = ld(x[c]);
}

/* Sets at[c] to `pixel` where x[c] is a new maximum. */
static inline void note_max(ptrdiff_t channels, float *restrict maximum, int32_t *restrict at,
                            const T *restrict x, int32_t pixel)
{
#pragma omp simd
    for (ptrdiff_t c = 0; c < channels; c++) {
        float v = ld(x[c]), m = maximum[c];
        int32_t is_new = is_new_max(v, m);
        at[c] = (pixel & is_new) | (at[c] & ~is_new);
        maximum[c] = blend(is_new, v, m);
    }
}

static inline void write_where(ptrdiff_t channels, T *restrict dx, const float *restrict dy,
                               const int32_t *restrict at, int32_t pixel)
{
#pragma omp simd
    for (ptrdiff_t c = 0; c < channels; c++)
        dx[c] = st_exact(blend(mask(at[c] == pixel), summed(dy[c]), 0));
}

static inline int32_t number_of(const window *v, ptrdiff_t i, ptrdiff_t j)
{
    return v->number + (int32_t)i * v->number_row + (int32_t)j;
}

/* Finds the number of each channel's first maximum. */
static inline void find_first(const window *v, ptrdiff_t channels, float *restrict maximum,
                              const T *x, int32_t *restrict at)
{
    load(channels, maximum, x);
    for (ptrdiff_t c = 0; c < channels; c++)
        at[c] = v->number;
    for (ptrdiff_t i = 0; i < v->rows; i++)
        for (ptrdiff_t j = 0; j < v->columns; j++)
            note_max(channels, maximum, at, x + i * v->row + j * v->pixel, number_of(v, i, j));
}

/* ---- gaps between windows ---- */

static inline ptrdiff_t chunk_from(const adj_conv_geom *g, ptrdiff_t c)
{
    return g->ic - c < MAX_POOL_CHUNK ? g->ic - c : MAX_POOL_CHUNK;
}

/* Zeros the columns outside of windows: in the first `rows` rows of dx, from the end of the
 * window w to the next. */
static inline void clear_gap(const adj_conv_geom *g, ptrdiff_t rows, span w, ptrdiff_t next, T *dx)
{
    size_t bytes = (size_t)((next - w.end) * g->ic) * sizeof *dx;
    for (ptrdiff_t i = 0; bytes > 0 && i < rows; i++)
        memset(dx + (i * g->iw + w.end) * g->ic, 0, bytes);
}

#endif
