/* filter_bf16.h - dw of a dense convolution by instructions that multiply pairs of bf16 and add
 * them in f32: AMX tiles (TDPBF16PS) or avx512_bf16 (VDPBF16PS). For bf16, and with AMX for f32
 * where adj_math allows it. On plain NHWC memory.
 *
 *   dw[kh][kw][c][o] = sum over pixels of  dy[pixel][o] * x[pixel moved by (kh, kw)][c]
 *
 * The pixels are the inner dimension of the product. They are cut into chunks; both operands of
 * a chunk are packed once and used for all taps:
 *
 *   dy, transposed:  steps of 32 pixels of a block of 16 outputs, [output][pixel], a tile each;
 *   x, in pairs:     entry f of a block of 16 channels is [channel]{pixel f, pixel f + 1}, so that
 *                    every second entry from any pixel on is the other operand of a product.
 *
 * Both are laid out on one grid, whose rows hold an image's outputs and as much padding as taps
 * read. Tap (kh, kw) is then a fixed offset in entries, and dy is zero in the padding. With a
 * stride, x has one grid for each phase of taps (tap modulo stride).
 *
 * avx512_bf16 multiplies pair by pair, so only x needs the padding. dy is packed in pairs as
 * well, [pair][output]{pixel, next pixel} of each row, without padding, and a list holds their
 * positions on the grid.
 *
 * Zeros times Inf or NaN would give NaN in taps that do not read that pixel: a chunk with an Inf
 * or NaN is packed again for each tap, without padding.
 *
 * f32: each operand is packed as two terms in bf16, and a product is three, as in
 * conv_bf16/conv_bf16.h. A chunk with a number that cannot be split is summed by the
 * definition's loops.
 *
 * Sums have three levels: a few steps in registers, a segment in f32, and the segments in double
 * and in order. The number of segments is fixed, so any number of threads gives the same bits. */
#ifndef DIRECT_FILTER_BF16_H
#define DIRECT_FILTER_BF16_H

#include <stddef.h>
#include <stdint.h>

#include "backends/direct/conv_axis.h"
#include "backends/direct/direct.h"

enum {
    FILTER_BF16_LANES = 16, /* channels of a block */
    FILTER_BF16_STEP = 32,  /* pixels of a step */
    FILTER_BF16_ENTRY = 64, /* bytes of a block's pairs */
    FILTER_BF16_TILE = 1024 /* bytes: 16x32 bf16 or 16x16 f32 */
};

typedef struct { /* rows or columns of the grid */
    conv_axis a;
    ptrdiff_t shift; /* the largest shift of a tap */
    ptrdiff_t pitch; /* from one row, or one image, to the next */
} filter_bf16_axis;

typedef struct {
    ptrdiff_t pairs; /* bytes from the start of x's pairs */
    ptrdiff_t sums;  /* bytes from the start of a row of sums */
} filter_bf16_column;

typedef struct filter_bf16 {
    direct_work work;         /* its end adds up the segments */
    int is_dense;             /* by avx512_bf16: dy is packed in pairs, without padding */
    int dy_in, x_in;          /* indices in group->in */
    adj_dtype dtype;          /* type of dw */
    ptrdiff_t terms, element; /* terms per number, 2 for f32; bytes of an element in memory */
    ptrdiff_t n, ic, oc;
    filter_bf16_axis h, w;
    ptrdiff_t shift; /* the largest shift of a tap, in entries */
    ptrdiff_t taps, phases;
    /* A chunk: several images, or some rows of one. */
    ptrdiff_t images, rows, per_image; /* per_image: chunks in an image, or 1 */
    ptrdiff_t steps, entries; /* steps of dy; entries of a phase of x; of one block, at most */
    /* Blocks of a job: a segment of the chunks, some outputs, some inputs. */
    ptrdiff_t segments, outputs, inputs;
    ptrdiff_t output_groups, input_groups;
    ptrdiff_t columns, sums_row; /* columns of sums; bytes of a row of tiles, the last spare */
    /* Offsets in the scratch: shared; the first thread's. Bytes per thread; offsets in a
     * thread's. */
    size_t sums, thread, per_thread;
    size_t x_at, dy_at, pair_at, column, pairs, tiles;
    ptrdiff_t pairs_term, tiles_term; /* f32: bytes to the second terms */
} filter_bf16;

/* The pixels of a chunk. */
typedef struct {
    ptrdiff_t image, images, row, rows;
} filter_bf16_chunk;

typedef struct {
    ptrdiff_t kh, kw;
} filter_bf16_tap;

/* Returns the phase of x that tap j along an axis is in, and its shift there. */
static inline ptrdiff_t filter_bf16_phase(const filter_bf16_axis *a, ptrdiff_t j)
{
    return j * a->a.dilation % a->a.stride;
}
static inline ptrdiff_t filter_bf16_shift(const filter_bf16_axis *a, ptrdiff_t j)
{
    return j * a->a.dilation / a->a.stride;
}

/* Return positions of dy on a chunk's grid; steps of dy's pixels. */
ptrdiff_t filter_bf16_positions(const filter_bf16 *p, filter_bf16_chunk c);
ptrdiff_t filter_bf16_steps(const filter_bf16 *p, filter_bf16_chunk c);
/* List pixels as byte offsets from the chunk's first image. */
void filter_bf16_list_x(const filter_bf16 *p, filter_bf16_chunk c, filter_bf16_tap phase,
                        int32_t *at);
void filter_bf16_list_dy(const filter_bf16 *p, filter_bf16_chunk c, int32_t *at);
/* Lists the grid positions of dy's pairs, if dense. */
void filter_bf16_list_pairs(const filter_bf16 *p, filter_bf16_chunk c, int32_t *at);
/* Lists the pixels of dy for which the tap is inside x, and the pixels of x. Returns how many;
 * fills both lists up to steps and entries. */
ptrdiff_t filter_bf16_list_tap(const filter_bf16 *p, filter_bf16_chunk c, filter_bf16_tap tap,
                               int32_t *x_at, int32_t *dy_at);

/* run.c, for AVX-512; NULL if the compiler does not support the target. */
extern const direct_code *const filter_bf16_code_avx512;

#if defined(__x86_64__) && defined(ISA_avx512)
#define HAS_BF16_PRODUCTS 1

enum { FILTER_BF16_SPARE = 2 }; /* columns after the last one: products take several */

typedef struct { /* a thread's state in a job */
    const filter_bf16 *p;
    const char *x, *dy;              /* all images of the operands */
    ptrdiff_t first_input, inputs;   /* channels of x */
    ptrdiff_t first_output, outputs; /* channels of dy */
    ptrdiff_t input_blocks, output_blocks;
    int32_t *x_at, *dy_at;
    int32_t *pair_at; /* dense: byte offset into a column's pairs for each pair of dy */
    filter_bf16_column *column;
    char *pairs, *tiles, *sums; /* tiles: [block of outputs][step] */
} filter_bf16_work;

/* Pixels to pack: byte offsets of their n channels, up to 16; negative for zeros. */
typedef struct {
    const char *start;
    const int32_t *at;
    ptrdiff_t n;
    ptrdiff_t term; /* f32: bytes from the packed first terms to the second; else 0 */
} filter_bf16_pixels;

/* product.c: pack count entries, of count + 1 pixels, or count steps, transposed or dense. Return
 * whether all numbers are finite and, for f32, can be split. */
int filter_bf16_pack_pairs(const filter_bf16_pixels *p, ptrdiff_t count, char *pairs);
int filter_bf16_pack_outputs(const filter_bf16_pixels *p, ptrdiff_t count, char *tiles);
int filter_bf16_pack_dense(const filter_bf16_pixels *p, ptrdiff_t count, char *tiles);
/* Sets tile[c][o] to the sum of n tiles of sums[o][c], pitch bytes apart, in double and in order.
 */
void filter_bf16_add_up(const char *sums, ptrdiff_t pitch, ptrdiff_t n, float *tile);

/* Each thread calls begin before products by tiles and end after them. */
void filter_bf16_begin(void);
void filter_bf16_end(void);
/* Adds the products of all blocks of outputs with `columns` columns, over some steps: dy[row] *
 * x[column] to sums[row][column], of 16x16 each. */
void filter_bf16_multiply(const filter_bf16_work *s, ptrdiff_t steps, ptrdiff_t columns);
#else
#define HAS_BF16_PRODUCTS 0
#endif

#endif
