/* pack.h - declarations shared by the files compiled for AVX-512: run.c calls the others. */
#ifndef DIRECT_FILTER_BF16_PACK_H
#define DIRECT_FILTER_BF16_PACK_H

#include "filter_bf16.h"

#if defined(__x86_64__) && defined(ISA_avx512)
#define HAS_BF16_PRODUCTS 1
#include <immintrin.h>

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
    ptrdiff_t part; /* f32: bytes from the packed first parts to the second; else 0 */
} filter_bf16_pixels;

/* pack.c: pack count entries, of count + 1 pixels, or count steps, transposed or dense. Return
 * whether all numbers are finite and, for f32, can be split. */
int filter_bf16_pack_pairs(const filter_bf16_pixels *p, ptrdiff_t count, char *pairs);
int filter_bf16_pack_outputs(const filter_bf16_pixels *p, ptrdiff_t count, char *tiles);
int filter_bf16_pack_dense(const filter_bf16_pixels *p, ptrdiff_t count, char *tiles);
/* Sets tile[c][o] to the sum of n tiles of sums[o][c], pitch bytes apart, in double and in order.
 */
void filter_bf16_add_up(const char *sums, ptrdiff_t pitch, ptrdiff_t n, float *tile);

/* product.c: each thread calls begin before products by tiles and end after them. */
void filter_bf16_begin(void);
void filter_bf16_end(void);
/* Adds the products of all blocks of outputs with `columns` columns, over some steps: dy[row] *
 * x[column] to sums[row][column], of 16x16 each. */
void filter_bf16_multiply(const filter_bf16_work *s, ptrdiff_t steps, ptrdiff_t columns);
#else
#define HAS_BF16_PRODUCTS 0
#endif

#endif
