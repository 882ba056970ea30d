/* im2col.h - our own dense convolution towards and from few channels (the first layer of a
 * net), on plain NHWC memory, where oneDNN fills vectors of 16 channels with 3 and zeros.
 *
 * A window is a row of taps: tap t = (kh*KW + kw)*C + c, span = KW*C of them for each kernel row,
 * which lie side by side in x. Both gradients are then products of small matrices, of which that of
 * taps and pixels is made and used a few pixels at a time, so that it never leaves the caches:
 *
 *   dw[t][o] = sum over pixels  cols[pixel][t] * dy[pixel][o],
 *              where cols[pixel][t] = x[oh*sh + kh - pt][ow*sw + kw - pl][c]
 *   dx:        cols[pixel][t] = sum over o  dy[pixel][o] * w[t][o],
 *              and each is added to that place of x
 *
 * The vectors' lanes are outputs for dw; for dx they are taps, which fill them well even for one
 * channel (49 of 64 for 7x7, 25 of 32 for 5x5, 27 of 32 for 3x3 of three). Forward is not here:
 * oneDNN's is fast.
 *
 * Adding up for dx: a row of dx takes a span from every pixel of up to KH/sh gathered rows, which a
 * ring keeps. Spans of neighbours overlap, but those of every `planes`-th pixel do not: these are
 * written one behind the other to a plane, whole vectors at a time, and the planes are added. */
#ifndef DIRECT_IM2COL_H
#define DIRECT_IM2COL_H

#include <stddef.h>

#include "backends/direct/direct.h"

enum {
    IM2COL_K = 32,       /* max kernel rows or columns */
    IM2COL_STRIDE = 32,  /* max stride */
    IM2COL_CHANNELS = 8, /* of x */
    IM2COL_LANES = 16,   /* the longest vector */
    IM2COL_SEGMENTS = 16 /* jobs of a filter gradient */
};

typedef struct im2col {
    direct_work work;
    adj_conv_geom g;
    adj_dtype dtype;
    int is_dw;
    int dy_in, other_in;      /* among group->in: dy; w or, for dw, x */
    ptrdiff_t span, taps;     /* of a kernel row; of all */
    ptrdiff_t pitch, o_pitch; /* taps, and outputs, in whole vectors */
    ptrdiff_t slots, row;     /* of the ring: gathered rows; for dw, rows of x; elements of one */
    /* dx: tiles of columns, few enough for the ring to stay in the second cache */
    ptrdiff_t column_tile, n_column_tile; /* columns of x; */
    ptrdiff_t pixels;                     /* of dy that one reads, at most */
    ptrdiff_t planes, plane;              /* elements of one */
    /* dw */
    ptrdiff_t chunk; /* pixels whose windows are gathered at a time */
    /* offsets in the scratch: shared; per thread */
    size_t panels, totals, thread, per_thread;
    size_t ring, cols, outputs, sums; /* within a thread's */
} im2col;

#endif
