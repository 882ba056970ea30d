/* winograd.h - dense 3x3 and 5x5 convolutions with stride 1 and their two gradients by
 * Winograd's algorithm, F(4x4, 3x3) and F(4x4, 5x5), on plain NHWC memory, in f32, or in bf16
 * with all arithmetic in f32. It needs 1/4 of the products for 3x3 and 4/25 for 5x5, and has
 * larger rounding errors, so it is used only where adj_math allows it.
 *
 * dst (y, dx, or dy for dw) is cut into tiles of 4x4 pixels; a tile's window in src (x, or dy
 * for dx) has 6x6, for 5x5 8x8. With the matrices of transform.h, for each tile t and channels
 * c, k:
 *
 *   y:   Y[t][k] = A^T ( sum over c of  (B^T X[t][c] B) * (G w[c][k] G^T) ) A
 *   dx:  the same with dy for x, and w rotated by 180 degrees, its channels swapped
 *   dw:  dw[c][k] = G^T ( sum over t of  (B^T X[t][c] B) * (A dY[t][k] A^T) ) G
 *
 * where * multiplies two matrices point by point: the sums are 36, or 64, products of matrices.
 * Elements outside a tensor are read as 0 and not written.
 *
 * y and dx: the filter is transformed by a reorder if it changes only when a parameter is set
 * (winograd.c), else in each run. A job is then a block of tiles, small enough for its
 * windows (v) and its products with up to 64 columns of the filter (m) to stay in the second
 * cache. dw: with few channels tiles are cut into segments, and a thread adds a segment's
 * products (u) in its own cache, block by block. With many, whose sums are large, all threads
 * transform a block of tiles, then each adds some of the products. At the end u is transformed
 * back. Sums have three levels: a block, blocks, segments. No sum depends on the number of
 * threads. */
#ifndef DIRECT_WINOGRAD_H
#define DIRECT_WINOGRAD_H

#include <stddef.h>

#include "backends/direct/direct.h"
#include "backends/direct/epilogue.h"

enum {
    WINOGRAD_TILE = 4, /* side of a tile */
    WINOGRAD_MAX_KERNEL = 5,
    WINOGRAD_MAX_WINDOW = WINOGRAD_TILE + WINOGRAD_MAX_KERNEL - 1,
    WINOGRAD_LANES = 16, /* channels are multiples of it: the longest vector */
    WINOGRAD_PANEL = 64  /* columns of a product at a time */
};

struct winograd;
typedef struct winograd_code {
    /* y and dx: transforms the filter's channels job*LANES ..; computes blocks first .. end */
    void (*filter)(const struct winograd *p, const adj_call *c, ptrdiff_t job);
    void (*blocks)(const struct winograd *p, const adj_call *c, ptrdiff_t first, ptrdiff_t end,
                   int thread);
    /* dw with segments: sums one segment */
    void (*segment)(const struct winograd *p, const adj_call *c, ptrdiff_t segment, int thread);
    /* dw without segments: transforms a thread's chunk of a block's tiles; adds product number
     * job */
    void (*transform)(const struct winograd *p, const adj_call *c, ptrdiff_t block, int thread);
    void (*product)(const struct winograd *p, const adj_call *c, ptrdiff_t block, ptrdiff_t job);
    /* dw: transforms the sums of x's channel `job` back */
    void (*result)(const struct winograd *p, const adj_call *c, ptrdiff_t job);
} winograd_code;

typedef struct winograd {
    const winograd_code *code;
    int is_dx, is_dw;
    int src_in, other_in;     /* indices in group->in: other is w, or dy for dw */
    int by_reorder;           /* w enters as u */
    direct_epilogue epilogue; /* epilogue of y */
    ptrdiff_t kernel, window; /* sides of the kernel and of a window */
    ptrdiff_t points;         /* points of a window */
    adj_dtype dtype;          /* dtype of the result */
    ptrdiff_t n;
    direct_size src, dst;
    ptrdiff_t top, left; /* rows and columns of a window before its tile */
    ptrdiff_t down, across, tiles;
    ptrdiff_t block, blocks; /* tiles of a block; blocks */
    ptrdiff_t segments;      /* ranges of tiles that dw sums separately; 1 if only one */
    ptrdiff_t panels;        /* panels of dst.c */
    int threads;
    ptrdiff_t tiles_per_copy, copy_floats; /* tiles whose pixels are copied at once; their floats */
    /* Elements from a point to the next in u, v and m; for dw, m is dy, transformed. */
    ptrdiff_t u_step, v_step, m_step;
    /* Offsets in the scratch, in floats: u is at 0, unless it is an operand; then each thread's
     * copy of pixels; then v and m, v_floats each thread, or once if all threads work on one
     * block. */
    size_t copies_at, v_at, v_floats;
} winograd;

typedef struct {
    ptrdiff_t image, row, column; /* position of the tile's first pixel */
} winograd_place;

static inline winograd_place winograd_place_of(const winograd *p, ptrdiff_t tile)
{
    return (winograd_place){tile / (p->down * p->across),
                            tile / p->across % p->down * WINOGRAD_TILE,
                            tile % p->across * WINOGRAD_TILE};
}

/* Return the tiles of a block; the columns of a panel. */
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
