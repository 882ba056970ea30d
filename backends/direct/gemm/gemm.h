/* gemm.h - y and dx of dense convolutions, and products of matrices, by multiply-adds in f32 and
 * f64, on plain NHWC memory: an implicit product of matrices.
 *
 * A row of a pass' positions (backends/direct/conv_axis.h) is a sum of products, one for each row
 * of taps i that reads a row of src,
 *
 *   dst[column][o] += src[row][column * stride - pad + ..] filter[i][..][o]
 *
 * where .. runs over the elements of the row's taps. In NHWC they lie side by side in src as in the
 * filter, so nothing is gathered: the left matrix is src itself, whose rows overlap. Rows of src
 * that are read beyond their ends are copied with zeros around them, once for all that reads them.
 * With dilated columns each tap is a part of its own. Where a row has too few positions to fill a
 * product's block, the windows of some rows are gathered, and multiplied at once.
 *
 * A 1x1 convolution without strides and a matmul are rows of pixels without a kernel: all pixels
 * are one row, cut where it is worth it.
 *
 * The filter is packed into panels of a few vectors of outputs, with zeros behind the last; turned
 * and transposed for dx. For y that is a reorder where it changes only when a parameter is set
 * (packed_filter.h); elsewhere, if there are few positions, it is multiplied by as it lies, but for
 * the outputs that fill no vector.
 *
 * Zeros of the padding times a filter's Inf or NaN would be NaN, where the definition has no such
 * product: then positions whose windows reach padding are computed as it is written (conv_plain.h).
 *
 * What follows element by element is computed in a product's registers (epilogue.h).
 *
 * Threads share out bands of rows, and where there are few of those the outputs, too, or first if
 * the filter is large. The order of an element's sum is that of the taps,
 * for any number of threads.
 */
#ifndef DIRECT_GEMM_H
#define DIRECT_GEMM_H

#include "backends/direct/arith.h"
#include "backends/direct/conv_axis.h"
#include "backends/direct/direct.h"
#include "backends/direct/epilogue.h"

enum { GEMM_PASSES = 16, GEMM_FILTER_JOBS = 16 };

typedef struct {
    conv_axis h, w;
    ptrdiff_t parts, depth; /* of a row of taps: how many, and elements of one */
    ptrdiff_t elements;     /* of all taps */
    size_t filter;          /* offset in the scratch, if packed there: panels, [element][vectors] */
} gemm_pass;

typedef struct gemm_code {
    /* Job of filter_jobs: packs a part of the filter. Returns whether what is multiplied by zeros
     * is finite. */
    int (*prepare_filter)(const adj_call *c, ptrdiff_t job);
    /* Some of the jobs. */
    void (*multiply)(const adj_call *c, job_range jobs, int thread, int is_finite);
} gemm_code;

typedef struct {    /* how the filter enters the product */
    int in;         /* among group->in */
    int is_packed;  /* in panels: */
    int by_reorder; /* as it enters; else they are made in the scratch, in each run */
    ptrdiff_t jobs; /* that pack it; 0: none */
    ptrdiff_t kh, kw;
} gemm_filter;

typedef struct {           /* rows of each pass that are computed together */
    ptrdiff_t rows, n;     /* how many, and bands in an image */
    ptrdiff_t top, bottom; /* rows of src for row r: from r * stride - top to r * stride + bottom */
    ptrdiff_t slots;       /* of a ring of them */
    ptrdiff_t left;        /* pixels of zeros before a copied row */
    ptrdiff_t row;         /* elements of one; 0: none is copied */
} gemm_band;

typedef struct {                              /* offsets in the scratch */
    size_t thread, per_thread;                /* each thread's; in there: */
    size_t ring, src_rows, windows, at, sums; /* rows, gathered windows, parts, sums, */
    size_t cast;                              /* a band's results before they are cast */
} gemm_scratch;

typedef struct gemm {
    const gemm_code *code;
    int threads, is_turned, is_flat, is_gathered;
    int has_margin; /* rows of src are copied */
    adj_dtype dtype;
    int src_in; /* among group->in */
    direct_epilogue epilogue;
    gemm_filter filter;
    ptrdiff_t n;          /* images */
    direct_size src, dst; /* if flat: rows of pixels, the last one shorter */
    ptrdiff_t pixels;     /* of all rows, if flat */
    ptrdiff_t lanes;      /* of a vector */
    ptrdiff_t vectors;    /* of outputs in a panel, at most */
    int n_pass;
    gemm_pass pass[GEMM_PASSES];
    gemm_band band;
    ptrdiff_t shares; /* of outputs, if there are few bands: each reads its part of the filter */
    ptrdiff_t jobs;   /* bands of all images, for the first share of the outputs, then the next */
    gemm_scratch scratch;
} gemm;

/* Are results stored in another type than they are computed in? */
static inline int gemm_casts(const gemm *p) { return p->epilogue.stored != p->dtype; }

/* Of a panel: which vectors of outputs, from `first` to `end`. */
typedef struct {
    ptrdiff_t first, end;
} gemm_panel;

/* Panels of whole vectors; a vector that outputs do not fill is one more. */
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

/* Where a panel is in what is packed, in elements; -1: nowhere, it is read as it lies. */
static inline ptrdiff_t gemm_packed_at(const gemm *p, const gemm_pass *a, gemm_panel panel)
{
    if (p->filter.is_packed)
        return panel.first * p->lanes * a->elements;
    return panel.end * p->lanes > p->dst.c ? 0 : -1;
}

#endif
