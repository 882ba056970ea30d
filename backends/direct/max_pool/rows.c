/* rows.c - the jobs of max_pool.h that search: forward, and the gradient from x. */
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
        y[c] = st(max(floor, max(max(max(v0, v1), v2), v3)));
    }
}

/* dx = dy at the first maximum, 0 elsewhere. */
static void write_2x2(const window *v, const T *restrict x, const T *restrict dy, T *restrict dx)
{
    const ptrdiff_t channels = v->pixel;
    const T *x1 = x + channels, *x2 = x + v->row, *x3 = x2 + channels;
    T *restrict dx1 = dx + channels, *restrict dx2 = dx + v->row, *restrict dx3 = dx2 + channels;
#pragma omp simd
    for (ptrdiff_t c = 0; c < channels; c++) {
        float d = summed(ld(dy[c])), v1 = ld(x1[c]), v2 = ld(x2[c]), v3 = ld(x3[c]);
        float m0 = ld(x[c]), m1 = max(m0, v1), m2 = max(m1, v2);
        int32_t at3 = is_new_max(v3, m2), at2 = is_new_max(v2, m1) & ~at3;
        int32_t at1 = is_new_max(v1, m0) & ~at2 & ~at3, at0 = ~(at1 | at2 | at3);
        dx[c] = st(choose(at0, d, 0));
        dx1[c] = st(choose(at1, d, 0));
        dx2[c] = st(choose(at2, d, 0));
        dx3[c] = st(choose(at3, d, 0));
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
        dx[c] += choose(mask(at[c] == pixel), dy[c], 0);
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
        y[c] = st(max(floor, maximum[c]));
}

static void write_any(const window *v, ptrdiff_t channels, const T *x, const T *dy, T *dx)
{
    float d[MAX_POOL_CHUNK];
    int32_t at[MAX_POOL_CHUNK];
    find_first(v, channels, d, x, at);
    load(channels, d, dy);
    for (ptrdiff_t i = 0; i < v->rows; i++)
        for (ptrdiff_t j = 0; j < v->columns; j++)
            write_where(channels, dx + i * v->row + j * v->pixel, d, at, number_of(v, i, j));
}

/* ---- jobs: a row of windows ---- */

static void forward(const max_pool *p, const adj_call *call, ptrdiff_t job, int thread)
{
    const adj_conv_geom *g = &p->g;
    const span h = rows_of(g, job % g->oh);
    const T *x = (const T *)call->in[p->x] + (job / g->oh * g->ih + h.begin) * g->iw * g->ic;
    T *y = (T *)call->out[0] + job * g->ow * g->ic;
    (void)thread;
    for (ptrdiff_t ow = 0; ow < g->ow; ow++, y += g->ic) {
        const span w = columns_of(g, ow);
        const window v = window_at(g, h, w);
        const T *corner = x + w.begin * g->ic;
        if (is_2x2(&v))
            maximum_2x2(&v, p->floor, corner, y);
        else
            for (ptrdiff_t c = 0; c < g->ic; c += MAX_POOL_CHUNK)
                maximum_any(&v, chunk_from(g, c), p->floor, corner + c, y + c);
    }
}

/* The rows of dx from these windows' to the next ones'; the first windows begin at row and column
 * 0, as pads are smaller than windows. */
static void backward(const max_pool *p, const adj_call *call, ptrdiff_t job, int thread)
{
    const adj_conv_geom *g = &p->g;
    const ptrdiff_t oh = job % g->oh, row = g->iw * g->ic;
    const span h = rows_of(g, oh);
    const ptrdiff_t next_h = oh + 1 < g->oh ? rows_of(g, oh + 1).begin : g->ih;
    const ptrdiff_t offset = (job / g->oh * g->ih + h.begin) * row;
    const T *x = (const T *)call->in[p->x] + offset;
    const T *dy = (const T *)call->in[p->dy] + job * g->ow * g->ic;
    T *dx = (T *)call->out[0] + offset;
    (void)thread;
    for (ptrdiff_t ow = 0; ow < g->ow; ow++, dy += g->ic) {
        const span w = columns_of(g, ow);
        const window v = window_at(g, h, w);
        const ptrdiff_t at = w.begin * g->ic;
        if (is_2x2(&v))
            write_2x2(&v, x + at, dy, dx + at);
        else
            for (ptrdiff_t c = 0; c < g->ic; c += MAX_POOL_CHUNK)
                write_any(&v, chunk_from(g, c), x + at + c, dy + c, dx + at + c);
        clear_gap(g, v.rows, w, ow + 1 < g->ow ? columns_of(g, ow + 1).begin : g->iw, dx);
    }
    memset(dx + (h.end - h.begin) * row, 0, (size_t)((next_h - h.end) * row) * sizeof *dx);
}

/* ---- jobs: a chunk of an image's channels, where windows overlap ---- */

typedef struct {
    const max_pool *p;
    ptrdiff_t channels;
    float *sum; /* row ih of dx is in slot ih % slots; slots of no row are 0 */
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
                pixel[c] = rounded(s[c]);
        }
        memset(sum, 0, (size_t)(g->iw * r->channels) * sizeof *sum);
    }
}

/* One row of windows; x and dy point to the image's and the row's first of the chunk's channels. */
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

static void backward_overlapping(const max_pool *p, const adj_call *call, ptrdiff_t job, int thread)
{
    const adj_conv_geom *g = &p->g;
    const ptrdiff_t n = job / p->chunks, first = job % p->chunks * MAX_POOL_CHUNK;
    const ptrdiff_t offset = n * g->ih * g->iw * g->ic + first;
    const T *x = (const T *)call->in[p->x] + offset;
    const T *dy = (const T *)call->in[p->dy] + n * g->oh * g->ow * g->ic + first;
    T *dx = (T *)call->out[0] + offset;
    const ring r = {p, chunk_from(g, first),
                    (float *)((char *)call->scratch + (size_t)thread * p->ring)};
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

const max_pool_code TYPED(max_pool) = {forward, backward, backward_overlapping};
