/* depthwise.h - depthwise convolution and its two gradients, on plain NHWC memory.
 *
 * With L = c*M lanes in a pixel of y (lane c*M + m), x is read with each channel repeated M
 * times, and dx is summed over M adjacent lanes at the end. In between, all three directions
 * work on independent lanes:
 *
 *   y [dst][l] = sum over taps  x [src(dst, tap)][l] * w[tap][l]
 *   dx[dst][l] = sum over taps  dy[src(dst, tap)][l] * w[tap][l]
 *   dw[tap][l] = sum over dst   x [src(dst, tap)][l] * dy[dst][l]
 *
 * src is the image that windows read (x, or dy for dx); dst has one window for each pixel (y,
 * dx, or dy for dw). With a stride s, the window moves by `step` = s columns of src per column
 * of dst. For dx, the columns of dst fall into `phases` = s classes instead, each with its own
 * taps, within which the window moves by 1.
 *
 * A job is a chunk of lanes of some rows of an image. The inner loop (grid.h) runs over the
 * pixels of a row for a vector of lanes, with a grid of taps in registers and without borders.
 * Either rows are prepared: copied once to float into a ring that stays in the caches, with
 * zeros around, channels repeated and columns split into `step` classes. Or they are read in
 * place, and a row is cut into runs of pixels that have the same taps inside the image.
 *
 * Few channels: a prepared row is packed, without gaps between pixels. The loop runs over it in
 * tiles of lcm(L, 16) lanes, a channel vector of weights is tiled to that width, and pixel
 * boundaries do not matter. */
#ifndef DIRECT_DEPTHWISE_H
#define DIRECT_DEPTHWISE_H

#include <stddef.h>

#include "backends/direct/direct.h"

enum {
    DEPTHWISE_K = 64,       /* max kernel rows or columns */
    DEPTHWISE_STRIDE = 32,  /* max stride */
    DEPTHWISE_LANES = 16,   /* tiled widths are multiples of it: the longest vector */
    DEPTHWISE_CHUNK = 64,   /* approximate lanes of a chunk if pixels are cut */
    DEPTHWISE_SEGMENTS = 16 /* approximate jobs of a filter gradient */
};

typedef struct { /* a kernel column */
    ptrdiff_t kw;
    ptrdiff_t at; /* column of src that it reads for the first pixel of its phase */
} depthwise_tap;

typedef struct { /* pixels first .. end of a phase; all have the taps tap .. end_tap */
    ptrdiff_t phase, first, end, tap, end_tap;
} depthwise_run;

typedef struct {
    ptrdiff_t first, valid; /* lanes of a pixel */
    ptrdiff_t pitch;        /* lanes from a pixel to the next in prepared rows */
    ptrdiff_t tiled_width;  /* lanes after which weights repeat: pitch, unless the row is packed */
} depthwise_chunk;

typedef struct depthwise {
    direct_work work;
    adj_conv_geom g;
    adj_dtype dtype;
    int is_dx, is_dw;
    int src_in, other_in; /* indices in group->in: src; w, or dy for dw */
    ptrdiff_t multiplier, lanes;
    direct_size src, dst;
    ptrdiff_t step, phases;
    int n_tap;
    depthwise_tap tap[DEPTHWISE_K]; /* by phase, then by column */
    int n_run;
    depthwise_run run[2 * DEPTHWISE_K + DEPTHWISE_STRIDE];
    ptrdiff_t n_chunk, chunk;
    int packed;
    int in_place;      /* rows are read in place */
    int prefetches;    /* prefetches rows ahead of their use */
    int lines_at_once; /* dw: max rows of dy summed at a time, up to GRID_LINES */
    /* prepared rows */
    ptrdiff_t pad;      /* columns before column 0 */
    ptrdiff_t columns;  /* columns of each of the `step` classes */
    ptrdiff_t row_size; /* elements; 0 if rows are read in place */
    ptrdiff_t slots;    /* rows of the ring */
    ptrdiff_t buffer;   /* elements of a row of results (dw: of dy) of one phase */
    ptrdiff_t weights;  /* elements of a chunk's filter */
    ptrdiff_t segments;
    /* offsets in the scratch: shared; first thread's. Bytes per thread */
    size_t filters, thread, per_thread;
    size_t ring, rows, sums; /* offsets in a thread's scratch */
} depthwise;

/* True if either tensor has more than `max` elements. */
static inline int depthwise_is_beyond(const depthwise *d, ptrdiff_t max)
{
    ptrdiff_t src = d->src.h * d->src.w * d->src.c, dst = d->dst.h * d->dst.w * d->dst.c;
    return d->g.n * (src + dst) > max;
}
depthwise_chunk depthwise_chunk_of(const depthwise *d, ptrdiff_t i);
/* Returns the row of src that a row of dst reads at kernel row kh; -1 if none. */
static inline ptrdiff_t depthwise_src_row(const depthwise *d, ptrdiff_t dst_row, ptrdiff_t kh)
{
    const adj_conv_geom *g = &d->g;
    ptrdiff_t row = dst_row * g->sh + kh * g->dh - g->pt;
    if (d->is_dx) {
        ptrdiff_t up = dst_row + g->pt - kh * g->dh;
        row = g->sh == 1 ? up : up / g->sh;
        if (row * g->sh != up)
            return -1;
    }
    return row >= 0 && row < d->src.h ? row : -1;
}

#endif
