/* winograd.h - dense 3x3 convolutions with stride 1 and their two gradients by Winograd's algorithm
 * F(4x4, 3x3), in f32 on plain NHWC memory: a quarter of the products, larger rounding errors. Only
 * where adj_math allows it.
 *
 * dst (y, dx, or dy for dw) is cut into tiles of 4x4 pixels; a tile's window in src (x, or dy
 * for dx) has 6x6. With the matrices of transform.h, for each tile t and channels c, k:
 *
 *   y:   Y[t][k] = A^T ( sum over c of  (B^T X[t][c] B) * (G w[c][k] G^T) ) A
 *   dx:  the same with dy for x, and w turned by 180 degrees, its channels swapped
 *   dw:  dw[c][k] = G^T ( sum over t of  (B^T X[t][c] B) * (A dY[t][k] A^T) ) G
 *
 * where * multiplies the 36 points of two 6x6 matrices one by one: the sums are 36 products of
 * matrices. What is outside a tensor is 0 when read and not written.
 *
 * y and dx: the filter is transformed; then a job is a block of tiles, small enough for its windows
 * (v) and its products with up to 64 columns of the filter (m) to stay in the second cache.
 * dw: all threads transform a block of tiles, then each adds some of the 36 products (u), which
 * stay in its cache; at the end u is transformed back. Sums have two levels: a block, blocks. No
 * sum depends on the number of threads. */
#ifndef DIRECT_WINOGRAD_H
#define DIRECT_WINOGRAD_H

#include <stddef.h>

#include "backends/direct/direct.h"

enum {
    WINOGRAD_TILE = 4,
    WINOGRAD_WINDOW = 6,
    WINOGRAD_POINTS = 36,
    WINOGRAD_LANES = 16, /* channels are multiples of it: the longest vector */
    WINOGRAD_PANEL = 64  /* columns of a product at a time */
};

struct winograd;
typedef struct winograd_code {
    /* y, dx: the filter's channels job*LANES ..; then a block of tiles */
    void (*filter)(const struct winograd *p, const adj_call *c, ptrdiff_t job);
    void (*block)(const struct winograd *p, const adj_call *c, ptrdiff_t block, int thread);
    /* dw: tile number job of a block; then products' part number job; in the end the result's
     * channels job*LANES .. */
    void (*tile)(const struct winograd *p, const adj_call *c, ptrdiff_t block, ptrdiff_t job);
    void (*product)(const struct winograd *p, const adj_call *c, ptrdiff_t block, ptrdiff_t job);
    void (*result)(const struct winograd *p, const adj_call *c, ptrdiff_t job);
} winograd_code;

typedef struct winograd {
    const winograd_code *code;
    int is_dx, is_dw;
    int src_in, other_in, bias_in; /* among group->in: other is w, or dy for dw; bias: or -1 */
    ptrdiff_t n;
    direct_size src, dst;
    ptrdiff_t top, left; /* rows and columns of a window before its tile */
    ptrdiff_t down, across, tiles;
    ptrdiff_t block, blocks; /* tiles of a block */
    ptrdiff_t panels;        /* of dst.c */
    int threads;
    /* Elements from a point to the next, and offsets in the scratch, in floats. */
    ptrdiff_t u_step, v_step, m_step; /* dw: m is dy, transformed */
    size_t v, thread; /* u is at 0; v of the first thread, and from one to the next */
} winograd;

typedef struct {
    ptrdiff_t image, row, column; /* of its first pixel */
} winograd_place;

static inline winograd_place winograd_place_of(const winograd *p, ptrdiff_t tile)
{
    return (winograd_place){tile / (p->down * p->across),
                            tile / p->across % p->down * WINOGRAD_TILE,
                            tile % p->across * WINOGRAD_TILE};
}

/* Tiles of a block; columns of a panel. */
static inline ptrdiff_t winograd_tiles_in(const winograd *p, ptrdiff_t block)
{
    ptrdiff_t left = p->tiles - block * p->block;
    return left < p->block ? left : p->block;
}

static inline ptrdiff_t winograd_width_of(const winograd *p, ptrdiff_t panel)
{
    ptrdiff_t left = p->dst.c - panel * WINOGRAD_PANEL;
    return left < WINOGRAD_PANEL ? left : WINOGRAD_PANEL;
}

#endif
