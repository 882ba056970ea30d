/* tile.h - a tile between a tensor and its 36 points. */
#ifndef DIRECT_WINOGRAD_TILE_H
#define DIRECT_WINOGRAD_TILE_H

#include "backends/direct/micro_gemm.h"
#include "winograd.h"

/* A square of pixels, some of them outside the image. */
typedef struct {
    ptrdiff_t h, w, c;     /* of the tensor */
    ptrdiff_t row, column; /* of the square's first pixel, within the image */
} winograd_square;

/* v[point*v_step + c] = B^T X B of a tile's window; v[point*step + k] = A Y A^T of a tile. */
void DIRECT(winograd_read_window)(const winograd *p, const float *src, ptrdiff_t tile, float *v);
void DIRECT(winograd_read_tile)(const winograd_square *s, const float *image, float *v,
                                ptrdiff_t step);
/* Prefetches tile s's share of the rows that the tiles below it read or write first, the channels
 * `first` .. of each pixel; `pixels` are left in the tensor. */
void DIRECT(winograd_prefetch)(const winograd_square *s, const float *image, ptrdiff_t pixels,
                               ptrdiff_t first, ptrdiff_t columns);
/* A^T M A of m[point*step + k], `columns` of them, + bias[k] (or NULL), to the tile from channel
 * `first` on. */
void DIRECT(winograd_write_tile)(const winograd_square *s, float *image, ptrdiff_t first,
                                 ptrdiff_t columns, const float *m, ptrdiff_t step,
                                 const float *bias);

/* The product over so many columns, a multiple of 16. */
static inline void winograd_multiply(micro_gemm p, ptrdiff_t columns)
{
    const ptrdiff_t max = VECTOR_BYTES == 64 ? MICRO_GEMM_VECTORS : 2; /* registers */
    for (ptrdiff_t left = columns / VECTOR; left > 0; left -= p.vectors) {
        p.vectors = left < max ? left : max;
        TYPED(micro_gemm)(&p);
        p.b += p.vectors * VECTOR;
        p.c += p.vectors * VECTOR;
    }
}

#endif
