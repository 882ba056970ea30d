/* tile.h - transforms between tiles of a tensor and their points. */
#ifndef DIRECT_WINOGRAD_TILE_H
#define DIRECT_WINOGRAD_TILE_H

#include "backends/direct/micro_gemm.h"
#include "winograd.h"

/* Squares of pixels that are transformed to points: windows of x, or of dy for dx; dw's tiles of
 * dy. */
typedef struct {
    const T *tensor;
    direct_size image;
    ptrdiff_t size;      /* side of a square: a window's or a tile's */
    ptrdiff_t top, left; /* rows and columns of a square before its tile */
    ptrdiff_t step;      /* elements from a point to the next */
    float *copy;         /* a thread's buffer for pixels */
} winograd_squares;

static inline winograd_squares winograd_windows(const winograd *p, const adj_call *c, int thread)
{
    float *copy = (float *)c->scratch + p->copies_at + thread * p->copy_floats;
    return (winograd_squares){c->in[p->src_in], p->src,    p->window, p->top,
                              p->left,          p->v_step, copy};
}

static inline winograd_squares winograd_tiles(const winograd *p, const adj_call *c, int thread)
{
    float *copy = (float *)c->scratch + p->copies_at + thread * p->copy_floats;
    return (winograd_squares){.tensor = c->in[p->other_in],
                              .image = p->dst,
                              .size = WINOGRAD_TILE,
                              .step = p->m_step,
                              .copy = copy};
}

/* Transforms the squares of n tiles to v[point*s->step + i*c + ..], i being tile first + i: B^T
 * X B for windows, A Y A^T for tiles. */
void TYPED(winograd_read)(const winograd *p, const winograd_squares *s, ptrdiff_t first,
                          ptrdiff_t n, float *v);
/* Transforms m[point*m_step + k], a panel's columns, by A^T M A, and writes it with the epilogue
 * to a tile of dst. */
void TYPED(winograd_write)(const winograd *p, const adj_call *c, ptrdiff_t tile, ptrdiff_t panel,
                           const float *m);

/* Pixels to prefetch while products are computed, when memory is idle; in memory order, which is
 * much faster than by squares. */
typedef struct {
    const T *at;
    ptrdiff_t pixels, pitch, columns; /* elements from a pixel to the next; of each pixel */
} winograd_prefetch;

/* Returns the pixels that the squares of n tiles from `first` on read and those before them do
 * not. */
winograd_prefetch TYPED(winograd_prefetch_of)(const winograd *p, const winograd_squares *s,
                                              ptrdiff_t first, ptrdiff_t n);

/* Prefetches job number `job` of `jobs`. */
static inline void winograd_prefetch_job(const winograd_prefetch *f, ptrdiff_t job, ptrdiff_t jobs)
{
    const ptrdiff_t line = 64 / sizeof(T), end = f->pixels * (job + 1) / jobs;
    for (ptrdiff_t i = f->pixels * job / jobs; i < end; i++)
        for (ptrdiff_t k = 0; k < f->columns; k += line)
            __builtin_prefetch(f->at + i * f->pitch + k);
}

/* Computes the product over the columns, a multiple of 16. */
static inline void winograd_multiply(micro_gemm p, ptrdiff_t columns)
{
    const ptrdiff_t max = VECTOR_BYTES == 64 ? MICRO_GEMM_VECTORS : 2; /* vectors in registers */
    for (ptrdiff_t left = columns / VECTOR; left > 0; left -= p.vectors) {
        p.vectors = left < max ? left : max;
        REAL_TYPED(micro_gemm)(&p);
        p.b += p.vectors * VECTOR;
        p.c += p.vectors * VECTOR;
    }
}

#endif
