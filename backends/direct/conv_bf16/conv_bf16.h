/* conv_bf16.h - y and dx of a dense convolution by AMX's tiles (TDPBF16PS), which multiply pairs of
 * bf16 and add them in f32. In bf16, and where adj_math allows it in f32. On plain NHWC memory.
 *
 *   dst[row][column][o] = sum over taps (i, j) and c of
 *       src[row * sh + i * dh - ph][column * sw + j * dw - pw][c] * filter[i][j][c][o]
 *
 * y is that sum, dx some of it, each a pass (backends/direct/conv_axis.h).
 *
 * For some rows of dst at a time, a band, the rows of src that they read are copied to a scratch,
 * with zeros as padding. There the elements that 16 neighbors of dst read for a row i of taps are
 * 16 rows of memory, a fixed number of bytes apart: a tile is loaded from where they are. Two ways:
 *
 *   in rows:   src's rows as they are: j and c are contiguous, windows overlap;
 *   unrolled:  for each column of dst the elements of its window, side by side. Rows of dst then
 *              follow each other without a gap, so that tiles are full whatever the width.
 *
 * A row of taps is a segment: kw * c elements, in steps of 32. Its last step has as many as are
 * left, in tiles of their own width, so that no element outside of a window is ever multiplied: an
 * Inf or NaN reaches what it reaches in the definition. What a filter with an Inf or NaN makes of
 * the padding's zeros is mended (border.c).
 *
 * f32: a number a is split into two parts in bf16, a1 nearest to it and a2 nearest to a - a1, and a
 * product into three, a1 b1 + a2 b1 + a1 b2. What is left out is at most 2^-15 of |a b|: a2 b2, up
 * to 2^-16, and what each operand's parts lack, 2^-17; parts below 2^-126 count as 0. The scratch
 * and the filter's tiles have all first parts before all second ones. Bands that read a number
 * without parts (backends/direct/split.h) are computed as the definition is written (plain.c), so
 * that Inf, NaN and overflow are where it has them.
 *
 * A sum is in one accumulator, in f32, in one order: any number of threads gives the same bits. A
 * bias behind y is added before it is rounded. */
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
    CONV_BF16_CACHED = 24, /* tiles of a filter that stays in the first cache beside src */
    CONV_BF16_TILES = 4,   /* that are multiplied at a time */
    CONV_BF16_KERNEL = 11,
    CONV_BF16_PASSES = 4
};

typedef struct {
    conv_axis h, w;
    int is_unrolled, has_padding;
    ptrdiff_t position;     /* bytes from one position's elements to the next one's */
    ptrdiff_t pitch, slots; /* of the scratch: bytes of a row; rows of a phase of them */
    ptrdiff_t lines, line;  /* in rows: lines of a band, tiles of one; unrolled: 1, all */
    ptrdiff_t segment;      /* bytes */
    ptrdiff_t whole, rest;  /* whole steps of a segment; bytes of the one behind them, or 0 */
    ptrdiff_t steps;        /* of all segments */
    int32_t segment_at[CONV_BF16_KERNEL];
    char shapes[64];   /* of tiles: what LDTILECFG reads */
    size_t filter;     /* offsets: in the scratch, [block][step] tiles */
    size_t tiles, dst; /* in a thread's: int32_t by tile; by position, of a band */
} conv_bf16_pass;

/* ---- what is compiled for an instruction set ---- */

/* Positions of a pass in a band, from its scratch. */
typedef struct {
    const conv_bf16_pass *pass;
    ptrdiff_t first, end; /* tiles */
    ptrdiff_t positions, blocks, outputs;
    ptrdiff_t element;               /* bytes of one in dst and bias */
    const char *src;                 /* the scratch */
    const char *filter;              /* tiles */
    ptrdiff_t src_part, filter_part; /* of f32: bytes to the second parts; else 0 */
    const int32_t *tile_at, *dst_at; /* bytes: where tiles begin in src, positions in dst */
    const char *bias;                /* by output; NULL: none */
    char *dst;
} conv_bf16_product;

/* Rows of src for a band. */
typedef struct {
    const conv_bf16_pass *pass;
    const char *src;             /* of an image */
    ptrdiff_t channels, scratch; /* of a pixel, in src and in the scratch */
    ptrdiff_t element;           /* bytes of one in src */
    ptrdiff_t first;             /* the band's first row in src; it may be padding */
    ptrdiff_t begin, end;        /* rows of the band */
    ptrdiff_t part;              /* of f32: bytes to the second parts; else 0 */
    char *dst;
} conv_bf16_rows;

/* A tile of the filter: elements from `first` on of a segment, 16 outputs from `output` on. */
typedef struct {
    const char *filter;
    ptrdiff_t kw;              /* of the filter */
    ptrdiff_t inputs, outputs; /* of the pass */
    ptrdiff_t channels;        /* inputs in the scratch */
    ptrdiff_t row, first, output;
    int is_turned; /* the filter has outputs before inputs */
} conv_bf16_tile;

typedef struct conv_bf16_code {
    const char *name;
    /* Returns whether all f32 have parts. */
    int (*copy_rows)(const conv_bf16_rows *s);
    /* The parts of n elements of f32. Returns the same. */
    int (*split)(const char *src, ptrdiff_t n, char *first, char *second);
    /* Of bf16, or of parts. Returns whether all is finite. */
    int (*pack)(const conv_bf16_pass *p, const conv_bf16_tile *t, char *tile);
    /* Called by each thread, before and after products. */
    void (*begin)(const conv_bf16_pass *p);
    void (*end)(void);
    void (*multiply)(const conv_bf16_product *p);
    /* The positions whose windows reach padding, anew without it; row: the band's first. */
    void (*mend)(const conv_bf16_product *p, ptrdiff_t channels, ptrdiff_t row);
} conv_bf16_code;

/* NULL: this compiler's target has none. */
extern const conv_bf16_code *const direct_conv_bf16_amx_avx512;

/* ---- the plan ---- */

typedef struct conv_bf16 {
    const conv_bf16_code *code;
    int src_in, filter_in, bias_in; /* among group->in; bias_in -1: none */
    int threads, is_turned;
    ptrdiff_t parts, element; /* of a number: 2 of f32; its bytes in src and dst */
    ptrdiff_t n, kh, kw;      /* images; of the filter */
    direct_size src, dst;
    ptrdiff_t channels;      /* of a pixel in the scratch: even */
    ptrdiff_t blocks;        /* of outputs */
    ptrdiff_t group, groups; /* blocks whose filter stays in the second cache; of them */
    ptrdiff_t rows, bands;   /* of a pass; of an image */
    ptrdiff_t units, jobs;   /* bands of all images and groups; what a thread takes at a time */
    int n_pass;
    conv_bf16_pass pass[CONV_BF16_PASSES];
    /* Offsets in the scratch: of the filter's parts in their order in memory; within a thread's. */
    size_t split, thread, per_thread, image;
    ptrdiff_t part; /* of image: bytes to the second parts */
} conv_bf16;

/* In which row of the scratch row i of a band's src is: those of a phase of the stride together. */
static inline ptrdiff_t conv_bf16_slot(const conv_bf16_pass *p, ptrdiff_t i)
{
    return i % p->h.stride * p->slots + i / p->h.stride;
}

/* Of a band: which image, from which of the pass' rows on, and which of the outputs. */
typedef struct {
    ptrdiff_t image, row, output, outputs;
} conv_bf16_band;

/* plain.c: a band of f32 by the definition, in double. */
void conv_bf16_plain(const conv_bf16 *p, const conv_bf16_pass *a, conv_bf16_band b,
                     const adj_call *c);
/* run.c */
adj_status conv_bf16_run(const adj_call *c);

#endif
