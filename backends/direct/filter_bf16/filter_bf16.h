/* filter_bf16.h - dw of a dense convolution by instructions that multiply pairs of bf16 and add
 * them in f32: AMX's tiles (TDPBF16PS) or avx512_bf16 (VDPBF16PS). In bf16, and with AMX in f32,
 * where adj_math allows it. On plain NHWC memory.
 *
 *   dw[kh][kw][c][o] = sum over pixels of  dy[pixel][o] * x[pixel moved by (kh, kw)][c]
 *
 * The pixels are the inner dimension of the product. For some of them at a time, a chunk, both
 * operands are packed once and used for all taps:
 *
 *   dy, transposed:  steps of 32 pixels of a block of 16 outputs, [output][pixel], a tile each;
 *   x, in pairs:     entry f of a block of 16 channels is [channel]{pixel f, pixel f + 1}, so that
 *                    every second entry from any pixel on is the other operand of a product.
 *
 * Both lie on one grid, whose rows hold an image's outputs and as much padding as taps read: tap
 * (kh, kw) then is a fixed number of entries, and the pixels of dy in the padding are zeros. With a
 * stride x has as many grids as there are phases of taps (tap modulo stride).
 *
 * avx512_bf16 multiplies pair by pair, so that only x has the padding: dy is in pairs as well,
 * [pair][output]{pixel, next pixel} of each row, dense, and a list says where on the grid they are.
 *
 * Zeros times what is not finite would be NaN in taps that do not read it: a chunk with an Inf or
 * NaN is packed anew for each tap, without padding.
 *
 * f32: each operand is packed as two parts in bf16, and a product is three, as in
 * conv_bf16/conv_bf16.h. A chunk with a number that has no parts is summed as the definition is
 * written.
 *
 * Sums have three levels: a few steps' in registers, those of a segment in f32, those of the
 * segments, a fixed number, in double and in order: any number of threads gives the same bits. */
#ifndef DIRECT_FILTER_BF16_H
#define DIRECT_FILTER_BF16_H

#include <stddef.h>
#include <stdint.h>

#include "backends/direct/direct.h"

enum {
    FILTER_BF16_LANES = 16, /* channels of a block */
    FILTER_BF16_STEP = 32,  /* pixels of a step */
    FILTER_BF16_ENTRY = 64, /* bytes of a block's pairs */
    FILTER_BF16_TILE = 1024 /* bytes: 16x32 bf16 or 16x16 f32 */
};

/* ---- what is compiled for an instruction set ---- */

typedef struct {
    ptrdiff_t pairs; /* bytes from the start of x's pairs */
    ptrdiff_t sums;  /* bytes from the start of a row of sums */
} filter_bf16_column;

enum { FILTER_BF16_SPARE = 2 };

/* sums[row][column] += dy[row] * x[column], of 16x16 each. */
typedef struct {
    ptrdiff_t rows, steps, columns;
    const char *outputs; /* tiles, [row][step] */
    const char *pairs;
    const int32_t *pair_at; /* if dense: bytes from a column's pairs on, for each pair of dy */
    const filter_bf16_column *column; /* with spare ones behind: products are of several */
    char *sums;
    ptrdiff_t sums_row;                 /* bytes */
    ptrdiff_t outputs_part, pairs_part; /* of f32: bytes to the second parts; else 0 */
} filter_bf16_product;

/* Bytes from start on of a pixel's channels, of which there are n, up to 16; negative: zeros. */
typedef struct {
    const char *start;
    const int32_t *at;
    ptrdiff_t n;
    ptrdiff_t part; /* of f32: from the packed first parts to the second ones, bytes; else 0 */
} filter_bf16_pixels;

typedef struct filter_bf16_code {
    const char *name;
    int has_parts; /* does it take f32? */
    int is_dense;  /* is dy without padding, in pairs? */
    /* Called by each thread, before and after products. */
    void (*begin)(void);
    void (*end)(void);
    void (*multiply)(const filter_bf16_product *p);
    /* count entries, of count + 1 pixels, or steps. Return whether all is finite, and f32 has
     * parts. */
    int (*pack_pairs)(const filter_bf16_pixels *p, ptrdiff_t count, char *pairs);
    int (*pack_outputs)(const filter_bf16_pixels *p, ptrdiff_t count, char *tiles);
    /* tile[c][o] = the sum of n tiles of sums[o][c], pitch bytes apart, in double and in order. */
    void (*add_up)(const char *sums, ptrdiff_t pitch, ptrdiff_t n, float *tile);
} filter_bf16_code;

/* NULL: this compiler's target has none. */
extern const filter_bf16_code *const direct_filter_bf16_amx_avx512,
    *const direct_filter_bf16_dot_avx512;

/* ---- the plan ---- */

typedef struct { /* along rows or columns of the grid */
    ptrdiff_t in, out, kernel, stride, dilation, pad;
    ptrdiff_t shift; /* the largest of a tap */
    ptrdiff_t pitch; /* from one row to the next, or from one image to the next */
} filter_bf16_axis;

typedef struct filter_bf16 {
    const filter_bf16_code *code;
    int dy_in, x_in; /* among group->in */
    int threads;
    adj_dtype dtype;          /* of dw */
    ptrdiff_t parts, element; /* of a number of x and dy: 2 of f32; its bytes in memory */
    ptrdiff_t n, ic, oc;
    filter_bf16_axis h, w;
    ptrdiff_t shift; /* the largest of a tap, in entries */
    ptrdiff_t taps, phases;
    /* A chunk: some images, or some rows of one. */
    ptrdiff_t images, rows, bands; /* bands: of rows, in an image */
    ptrdiff_t steps, entries;      /* of dy; of a phase of x; of a block, at most */
    /* A job: a segment of the chunks, some outputs, some inputs; in blocks. */
    ptrdiff_t segments, outputs, inputs;
    ptrdiff_t output_groups, input_groups, jobs;
    ptrdiff_t columns, sums_row; /* of a job's sums: bytes of a row of tiles, the last is spare */
    /* Offsets in the scratch: shared; per thread; within a thread's. */
    size_t sums, thread, per_thread;
    size_t x_at, dy_at, pair_at, column, pairs, tiles;
    ptrdiff_t pairs_part, tiles_part; /* of f32: bytes to the second parts */
} filter_bf16;

/* The pixels of a chunk. */
typedef struct {
    ptrdiff_t image, images, row, rows;
} filter_bf16_chunk;

typedef struct {
    ptrdiff_t kh, kw;
} filter_bf16_tap;

/* Which phase of x tap j along an axis is in, and how far it moves there. */
static inline ptrdiff_t filter_bf16_phase(const filter_bf16_axis *a, ptrdiff_t j)
{
    return j * a->dilation % a->stride;
}
static inline ptrdiff_t filter_bf16_shift(const filter_bf16_axis *a, ptrdiff_t j)
{
    return j * a->dilation / a->stride;
}
/* The positions of the grid where a phase of x has pixels: first, and behind the last. */
ptrdiff_t filter_bf16_first(const filter_bf16_axis *a, ptrdiff_t phase);
ptrdiff_t filter_bf16_last(const filter_bf16_axis *a, ptrdiff_t phase);

/* grid.c: positions of a chunk's grid that dy has; steps of dy's pixels. */
ptrdiff_t filter_bf16_positions(const filter_bf16 *p, filter_bf16_chunk c);
ptrdiff_t filter_bf16_steps(const filter_bf16 *p, filter_bf16_chunk c);
/* Lists of pixels; bytes from the chunk's first image on. */
void filter_bf16_list_x(const filter_bf16 *p, filter_bf16_chunk c, filter_bf16_tap phase,
                        int32_t *at);
void filter_bf16_list_dy(const filter_bf16 *p, filter_bf16_chunk c, int32_t *at);
/* If dense: where on the grid dy's pairs are. */
void filter_bf16_list_pairs(const filter_bf16 *p, filter_bf16_chunk c, int32_t *at);
/* Those pixels of dy for which the tap is inside x, and these pixels of x. Returns how many; both
 * lists are filled up to steps and entries. */
ptrdiff_t filter_bf16_list_tap(const filter_bf16 *p, filter_bf16_chunk c, filter_bf16_tap tap,
                               int32_t *x_at, int32_t *dy_at);

/* run.c */
adj_status filter_bf16_run(const adj_call *c);

#endif
