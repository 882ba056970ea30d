/* filter_gemm.h - dw of a dense convolution by f32 or f64 multiply-adds, on plain NHWC memory:
 * an implicit matrix product.
 *
 *   dw[i][..][o] = sum over rows and columns of  x[row * sh + i * dh - pt][column * sw - pl + ..]
 *                                                * dy[row][column][o]
 *
 * where .. runs over the elements of a row of taps. In NHWC they are contiguous in x, so that
 * the left matrix is x itself, transposed, with overlapping columns, and nothing is gathered.
 * Rows of x that are read beyond their ends are copied with zeros around them. If x has many
 * channels, all rows are copied, a panel of channels at a time, because such large pixels share
 * a few sets of the first cache. Rows of dy are cut into chunks that stay in that cache; all taps
 * are summed over a chunk.
 *
 * For a 1x1 convolution without strides and padding, the pixels of all images are one sequence,
 * cut into segments and these into chunks. If there are many outputs, those of a
 * product are first copied to contiguous memory, in both cases. The operands of the next chunk
 * are prefetched meanwhile.
 *
 * Zeros of the padding times an Inf or NaN of dy would give NaN in taps that do not read that
 * pixel: the taps of such a chunk are summed one by one, over the columns that they read.
 *
 * Sums have three levels: a chunk in registers, a segment of chunks in dw's type, and the segments
 * in double and in order. The number of segments is fixed, so any number of threads gives the
 * same bits. */
#ifndef DIRECT_FILTER_GEMM_H
#define DIRECT_FILTER_GEMM_H

#include "backends/direct/conv_axis.h"
#include "backends/direct/direct.h"

enum {
    FILTER_GEMM_VECTORS = 2, /* vectors of outputs in a product */
    FILTER_GEMM_ENDS = 32    /* jobs in which segments are added */
};

typedef struct {
    direct_work work; /* its end adds up the segments */
    int x_in, dy_in;  /* indices in group->in */
    ptrdiff_t n;
    direct_size x, y;
    conv_axes a;
    ptrdiff_t lanes; /* lanes of a vector */
    int packs_dy;    /* dy is copied to whole vectors: outputs do not fill them, or are many */
    int has_margin;  /* rows of x are read beyond their ends */
    /* A chunk: rows of dy in a chunk, and chunks of an image. A job: a segment of all chunks, a
     * group of outputs in vectors, and a panel of x's channels. */
    ptrdiff_t rows, chunks, segments, group, groups, panel, panels;
    ptrdiff_t pixels, chunk_pixels;  /* pixels of the sequence, and of a chunk at most; else 0 */
    ptrdiff_t slices, depth;         /* slices of a row of taps, and elements of one */
    ptrdiff_t elements;              /* elements of all taps in a panel */
    ptrdiff_t slots;                 /* rows of a ring of rows of x */
    ptrdiff_t left;                  /* elements of zeros before a copied row */
    ptrdiff_t row;                   /* elements of a copied row; 0 if none is copied */
    size_t sums, thread, per_thread; /* offsets: shared; first thread's. Bytes per thread */
    size_t ring, x_rows, at, packed; /* offsets in a thread's: rows; slices; dy in whole vectors */
} filter_gemm;

#endif
