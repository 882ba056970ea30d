/* filter_gemm.h - dw of a dense convolution by multiply-adds in f32 and f64, on plain NHWC memory:
 * an implicit product of matrices.
 *
 *   dw[i][..][o] = sum over rows and columns of  x[row * sh + i * dh - pt][column * sw - pl + ..]
 *                                                * dy[row][column][o]
 *
 * where .. runs over the elements of a row of taps. In NHWC they lie side by side in x, so that the
 * left matrix is x itself, transposed, whose columns overlap, and nothing is gathered. Rows of x
 * that are read beyond their ends are copied with zeros around them. Where x has many channels, all
 * rows are copied, a panel of channels at a time: pixels of so many bytes share a few sets of the
 * first cache. For some rows of dy at a time, a band that stays in that cache, all taps are summed.
 *
 * Of a 1x1 convolution without strides and padding the pixels of all images are one sequence, cut
 * into segments and these into bands (pixels.c). Of many outputs, here as there, those of a product
 * are copied to one place first. What the next band reads is prefetched meanwhile.
 *
 * Zeros of the padding times an Inf or NaN of dy would be NaN in taps that do not read it: the taps
 * of such a band are summed one by one, over the columns that they read.
 *
 * Sums have three levels: a band's in registers, those of a segment of the bands in dw's type, and
 * those of the segments, a fixed number, in double and in order: any number of threads gives the
 * same bits. */
#ifndef DIRECT_FILTER_GEMM_H
#define DIRECT_FILTER_GEMM_H

#include "backends/direct/conv_axis.h"
#include "backends/direct/direct.h"

enum {
    FILTER_GEMM_VECTORS = 2, /* of outputs in a product */
    FILTER_GEMM_PARTS = 32   /* of dw, in which segments are added up */
};

typedef struct filter_gemm_code {
    /* A job's sums: over bands of rows, over bands of pixels. */
    void (*add_segment)(const adj_call *c, ptrdiff_t job, int thread);
    void (*add_pixels)(const adj_call *c, ptrdiff_t job, int thread);
    void (*add_up)(const adj_call *c, ptrdiff_t part);
} filter_gemm_code;

typedef struct {
    const filter_gemm_code *code;
    int x_in, dy_in; /* among group->in */
    int threads;
    ptrdiff_t n;
    direct_size x, y;
    conv_axes a;
    ptrdiff_t lanes; /* of a vector */
    int packs_dy;    /* dy is copied to whole vectors: outputs do not fill them, or are many */
    int has_margin;  /* rows of x are read beyond their ends */
    /* A band: some rows of dy, of which there are so many in an image. A job: a segment of all
     * bands, a group of outputs, in vectors, and a panel of x's channels. */
    ptrdiff_t rows, bands, segments, group, groups, panel, panels, jobs;
    ptrdiff_t pixels, band_pixels;   /* of the sequence, and of a band at most; else 0 */
    ptrdiff_t parts, depth;          /* of a row of taps: how many, and elements of one */
    ptrdiff_t elements;              /* of all taps, of a panel */
    ptrdiff_t slots;                 /* of a ring of rows of x */
    ptrdiff_t left;                  /* elements of zeros before a copied row */
    ptrdiff_t row;                   /* elements of one; 0: none is copied */
    size_t sums, thread, per_thread; /* offsets in the scratch: of all jobs'; of each thread's; */
    size_t ring, x_rows, at, packed; /* in there: rows; parts; dy in whole vectors */
} filter_gemm;

#endif
