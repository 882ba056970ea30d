/* gemm.h - y and dx of dense convolutions, and matrix products, by f32 or f64 multiply-adds, on
 * plain NHWC memory: an implicit matrix product.
 *
 * y takes one pass; dx takes one for each position within a stride. A row of a pass's positions
 * (backends/direct/conv_axis.h) is a sum of products, one for each row of taps i that reads a row
 * of src,
 *
 *   dst[column][o] += src[row][column * stride - pad + ..] filter[i][..][o]
 *
 * where .. runs over the elements of the row's taps. In NHWC they are contiguous in src as in
 * the filter, so nothing is gathered: the left matrix is src itself, with overlapping rows. Rows
 * of src that are read beyond their ends are copied once with zeros around them. With dilated
 * columns each tap is a slice of its own. If a row has too few positions to fill a product's block,
 * the windows of several rows are gathered and multiplied at once.
 *
 * For a 1x1 convolution without strides and for a matmul, all pixels are one row, which is cut
 * as the threads and caches need.
 *
 * The filter is packed into panels of a few vectors of outputs, with zeros after the last
 * output; it is rotated and transposed for dx. For y, packing is a reorder if the filter changes
 * only when a parameter is set (gemm.c). Otherwise, if there are few positions, it is
 * read in place, except for the outputs that do not fill a vector.
 *
 * Zeros of the padding times a filter's Inf or NaN would give NaN, a product that the definition
 * does not have: then positions whose windows reach padding are computed by the definition
 * (conv_axis.h).
 *
 * Elementwise epilogues are computed in a product's registers (epilogue.h).
 *
 * Chunks of rows are distributed to the threads. Few chunks are divided by outputs as well; of a
 * large filter, outputs are distributed first. Each element is summed in the order of the taps, for
 * any number of threads. */
#ifndef DIRECT_GEMM_H
#define DIRECT_GEMM_H

#include "backends/direct/arith.h"
#include "backends/direct/conv_axis.h"
#include "backends/direct/direct.h"
#include "backends/direct/epilogue.h"

enum { GEMM_PASSES = 16, GEMM_FILTER_JOBS = 16 };

typedef struct {
    conv_axis h, w;
    ptrdiff_t slices, depth; /* slices of a row of taps, and elements of one */
    ptrdiff_t elements;      /* elements of all taps */
    size_t filter; /* offset in the scratch, if packed there: panels, [element][vectors] */
} gemm_pass;

typedef struct gemm_code {
    /* Runs one of filter_jobs: packs part of the filter. Returns whether the elements multiplied
     * by zeros are finite. */
    int (*prepare_filter)(const adj_call *c, ptrdiff_t job);
    /* Runs some of the jobs. */
    void (*multiply)(const adj_call *c, job_range jobs, int thread, int is_finite);
} gemm_code;

typedef struct {    /* the filter's layout in the product */
    int in;         /* index in group->in */
    int is_packed;  /* is packed in panels; if so: */
    int by_reorder; /* packed by a reorder; else packed in the scratch in each run */
    ptrdiff_t jobs; /* jobs that pack it; 0 if none */
    ptrdiff_t kh, kw;
} gemm_filter;

typedef struct {           /* the rows of each pass that are computed together */
    ptrdiff_t rows, n;     /* rows in a chunk; chunks in an image */
    ptrdiff_t top, bottom; /* rows of src for row r: from r * stride - top to r * stride + bottom */
    ptrdiff_t slots;       /* rows of src in a ring */
    ptrdiff_t left;        /* pixels of zeros before a copied row */
    ptrdiff_t row;         /* elements of a copied row; 0 if none is copied */
} gemm_chunk;

typedef struct {               /* offsets in the scratch */
    size_t thread, per_thread; /* first thread's; bytes per thread; offsets in a thread's: */
    size_t ring, src_rows, windows, at, sums; /* rows, gathered windows, slices, sums, */
    size_t cast;                              /* a chunk's results before they are cast */
} gemm_scratch;

typedef struct gemm {
    const gemm_code *code;
    int threads, is_turned, is_flat, is_gathered;
    int has_margin; /* rows of src are copied */
    adj_dtype dtype;
    int src_in; /* indices in group->in */
    direct_epilogue epilogue;
    gemm_filter filter;
    ptrdiff_t n;          /* images */
    direct_size src, dst; /* if flat: rows of pixels, the last one shorter */
    ptrdiff_t pixels;     /* pixels of all rows, if flat */
    ptrdiff_t lanes;      /* lanes of a vector */
    ptrdiff_t vectors;    /* vectors of outputs in a panel, at most */
    int n_pass;
    gemm_pass pass[GEMM_PASSES];
    gemm_chunk chunk;
    ptrdiff_t output_chunks; /* portions of the outputs, each with its rows of the filter */
    ptrdiff_t jobs; /* chunks of all images for the first portion of the outputs, then the next */
    gemm_scratch scratch;
} gemm;

/* True if results are stored in another type than they are computed in. */
static inline int gemm_casts(const gemm *p) { return p->epilogue.stored != p->dtype; }

/* A panel: its vectors of outputs, from `first` to `end`. */
typedef struct {
    ptrdiff_t first, end;
} gemm_panel;

/* Returns the panels of whole vectors; a vector that outputs do not fill is one more. */
static inline ptrdiff_t gemm_whole_panels(const gemm *p)
{
    return divide_up(p->dst.c / p->lanes, p->vectors);
}

static inline ptrdiff_t gemm_panels(const gemm *p)
{
    return gemm_whole_panels(p) + (p->dst.c % p->lanes > 0);
}

static inline gemm_panel gemm_panel_at(const gemm *p, ptrdiff_t i)
{
    const ptrdiff_t vectors = p->dst.c / p->lanes, n = gemm_whole_panels(p);
    return i < n ? (gemm_panel){vectors * i / n, vectors * (i + 1) / n}
                 : (gemm_panel){vectors, vectors + 1};
}

/* Returns the offset of a panel in the packed filter, in elements; -1 if it is read in place. */
static inline ptrdiff_t gemm_packed_at(const gemm *p, const gemm_pass *a, gemm_panel panel)
{
    if (p->filter.is_packed)
        return panel.first * p->lanes * a->elements;
    return panel.end * p->lanes > p->dst.c ? 0 : -1;
}

#endif
