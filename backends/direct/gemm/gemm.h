/* gemm.h - dense convolutions and products of matrices, f32 in plain NHWC memory: what oneDNN is
 * for, where there is none.
 *
 * A row of output pixels is a sum of products, one for each kernel row kh,
 *
 *   y[ow][o] = sum over kh of  x[ih][ow*sw - pl + ..] w[kh][..][o],   ih = oh*sh - pt + kh*dh,
 *
 * where .. runs over the kw*ic numbers of a kernel row. In NHWC they lie side by side in x as in w,
 * so nothing is gathered: the left matrix is x itself, whose rows overlap. A row of x that is read
 * beyond its ends is copied with zeros around it, once. With dilated columns each tap is a product
 * of its own. Where there are too few pixels in a row to fill a product's block, the
 * windows of some rows of pixels are gathered, and multiplied at once.
 *
 * A 1x1 convolution without strides and a matmul are rows of pixels without a kernel: all pixels
 * are one row, cut where it is worth it.
 *
 * Outputs that fill whole vectors are multiplied with w as it lies; the rest of them are copied to
 * a panel that is filled up with zeros. The order of an element's sum is that of w, for any number
 * of threads. */
#ifndef DIRECT_GEMM_H
#define DIRECT_GEMM_H

#include "backends/direct/direct.h"

typedef struct {
    direct_work work;
    adj_conv_geom g; /* if flat: of oh rows of ow pixels, the last one shorter */
    int is_flat, is_gathered;
    ptrdiff_t pixels;          /* of all rows, if flat */
    int x_in, w_in, bias_in;   /* among group->in; bias_in -1: none */
    ptrdiff_t span, taps;      /* of a kernel row: kw*ic; of all */
    ptrdiff_t whole, rest;     /* outputs in whole vectors, and those left */
    ptrdiff_t band, bands;     /* rows of pixels that are computed together; how many in an image */
    int is_padded;             /* rows of x are copied */
    ptrdiff_t slots, row;      /* of the ring of copies: how many, elements of one */
    size_t panel;              /* offsets in the scratch: of the rest's columns; */
    size_t thread, per_thread; /* of each thread's */
    size_t ring, windows, product; /* in there: copies; gathered windows; the rest's sums */
} gemm;

#endif
