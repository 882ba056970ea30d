/* conv_bf16.h - y and dx of a dense convolution by AMX tiles (TDPBF16PS), which multiply pairs
 * of bf16 and add them in f32. For bf16, and for f32 where adj_math allows it. On plain NHWC
 * memory.
 *
 *   dst[row][column][o] = sum over taps (i, j) and c of
 *       src[row * sh + i * dh - ph][column * sw + j * dw - pw][c] * filter[i][j][c][o]
 *
 * y is one such sum, dx one or several; each is a pass (backends/direct/conv_axis.h).
 *
 * Work goes by chunks, which are some rows of dst. The rows of src that a chunk reads are copied
 * to a scratch buffer, with zeros as padding. There, the elements that 16 consecutive positions
 * of dst read for row i of taps are 16 rows of memory at a fixed distance, so a tile is loaded
 * from there without packing. There are two layouts:
 *
 *   in rows:   src's rows unchanged: j and c are contiguous, windows overlap;
 *   unrolled:  for each column of dst the elements of its window, side by side. Rows of dst then
 *              follow each other without a gap, so that tiles are full whatever the width.
 *
 * A row of taps is a segment: kw * c elements, in steps of 32. Its last step has the remaining
 * elements, in tiles of that width, so that no element outside of a window is multiplied: an Inf
 * or NaN reaches only the results that it reaches in the definition. If the filter has an Inf or
 * NaN, results whose windows reach padding are recomputed by the definition (conv_axis.h), since
 * Inf times the padding's zeros is NaN.
 *
 * f32: a number a is split into two bf16 terms, a1 nearest to it and a2 nearest to a - a1, and a
 * product into three, a1 b1 + a2 b1 + a1 b2. The relative truncation error is at most 2^-15: a2
 * b2 contributes up to 2^-16, and each operand's remainder 2^-17; terms below 2^-126 count as 0.
 * The scratch and the filter's tiles have all first terms before all second ones. Chunks that
 * read a number that cannot be split (backends/direct/bf16_vectors.h) are computed by the
 * definition, so that Inf, NaN and overflow match it.
 *
 * Each sum has one f32 accumulator and one order: any number of threads gives the same bits. A
 * bias is added before y is rounded. */
#ifndef DIRECT_CONV_BF16_H
#define DIRECT_CONV_BF16_H

#include <stddef.h>
#include <stdint.h>

#include "backends/direct/conv_axis.h"
#include "backends/direct/direct.h"

enum {
    CONV_BF16_LANES = 16,  /* positions of a tile, outputs of a block */
    CONV_BF16_STEP = 64,   /* bytes of a step: 32 elements */
    CONV_BF16_TILE = 1024, /* bytes */
    CONV_BF16_CACHED = 24, /* filter tiles that stay in the first cache beside src */
    CONV_BF16_TILES = 4,   /* tiles multiplied at a time */
    CONV_BF16_PASSES = 4
};

typedef struct {
    conv_axis h, w;
    int is_unrolled, has_padding;
    ptrdiff_t position;     /* bytes from one position's elements to the next position's */
    ptrdiff_t pitch, slots; /* scratch: bytes of a row; rows per phase */
    ptrdiff_t lines, line;  /* in rows: lines of a chunk, tiles of a line; unrolled: 1, all tiles */
    ptrdiff_t segment;      /* bytes of a segment */
    ptrdiff_t whole, rest;  /* whole steps of a segment; bytes of the last, partial one, or 0 */
    ptrdiff_t steps;        /* steps of all segments */
    int32_t segment_at[CONV_BF16_KERNEL];
    char shapes[64];   /* tile shapes, as LDTILECFG reads them */
    size_t filter;     /* offset in the scratch of [block][step] tiles */
    size_t tiles, dst; /* offsets in a thread's scratch: int32_t by tile; by position of a chunk */
} conv_bf16_pass;

typedef struct conv_bf16 {
    int src_in, filter_in, bias_in; /* indices in group->in; bias_in is -1 if there is none */
    int threads, is_turned;
    ptrdiff_t terms, element; /* terms per number, 2 for f32; bytes of an element in memory */
    ptrdiff_t n, kh, kw;      /* images; filter rows and columns */
    direct_size src, dst;
    ptrdiff_t channels;      /* channels of a pixel in the scratch: even */
    ptrdiff_t blocks;        /* blocks of outputs */
    ptrdiff_t group, groups; /* blocks whose filter stays in the second cache; groups */
    ptrdiff_t rows, chunks;  /* rows of dst in a chunk; chunks of an image */
    ptrdiff_t units;         /* chunks of all images and groups */
    ptrdiff_t jobs;          /* units that a thread takes at a time */
    int n_pass;
    conv_bf16_pass pass[CONV_BF16_PASSES];
    /* Offsets in the scratch: the filter's terms in memory order; the first thread's. Bytes per
     * thread; offset of the image in a thread's. */
    size_t split, thread, per_thread, image;
    ptrdiff_t term; /* bytes from the image's first terms to the second */
} conv_bf16;

/* Returns the scratch row of row i of a chunk's src: rows of one phase of the stride are
 * consecutive. */
static inline ptrdiff_t conv_bf16_slot(const conv_bf16_pass *p, ptrdiff_t i)
{
    return i % p->h.stride * p->slots + i / p->h.stride;
}

/* run.c, for AVX-512; NULL if the compiler does not support the target. */
extern adj_status (*const conv_bf16_run_amx_avx512)(const adj_call *c);

#if defined(__x86_64__) && defined(ISA_avx512)
#define HAS_TILES 1

/* A chunk: its image, its first row in the pass, and its group of outputs. */
typedef struct {
    ptrdiff_t image, row, output, outputs;
} conv_bf16_chunk;

typedef struct { /* state of a thread */
    const conv_bf16 *p;
    const adj_call *call;
    char *own;     /* the thread's scratch */
    int is_finite; /* the filter is; for f32: can be split */
} conv_bf16_work;

/* pack.c: copies rows `begin` to `end` of the chunk's src; returns whether all f32 numbers can be
 * split. */
int conv_bf16_copy_rows(const conv_bf16_work *s, const conv_bf16_pass *a, const conv_bf16_chunk *b,
                        ptrdiff_t begin, ptrdiff_t end);
/* Splits n f32 elements into terms; returns whether all can be split. */
int conv_bf16_split(const char *src, ptrdiff_t n, char *first, char *second);
/* Packs tile i of the pass's filter; the tiles of both terms are counted. Returns whether all
 * elements are finite. */
int conv_bf16_pack(const conv_bf16 *p, const adj_call *call, const conv_bf16_pass *a, ptrdiff_t i);
#else
#define HAS_TILES 0
#endif

#endif
