/* row_kernel.h - fused row kernels: the groups that a training step spends its time in, each as one
 * loop that keeps everything in registers: what loops.h has for any group, one node after the other
 * over a chunk, these are for a few whole groups.
 *
 * A row kernel goes down rows, WIDTH columns wide; what belongs to a column - constants, sums - is
 * loaded once, or once for a few rows. Where fewer columns are left at the end of a row, the same
 * loop goes over its last WIDTH, of which only those count. There are three forms:
 *
 *   y = relu(norm(x) + a)                                     all but one may be missing
 *   d = mask(a + b), or norm_grad(x, d); d's sums             all but one may be missing
 *   d = dy where norm(x) > 0; d's norm sums with x and, if wanted, y = relu(norm(x)); or
 *     norm_grad(x, d) and its sum
 *
 * Sums are in f32: a cast of a bf16 d before them changes nothing. */
#ifndef DIRECT_FUSED_POINTWISE_ROW_KERNEL_H
#define DIRECT_FUSED_POINTWISE_ROW_KERNEL_H

#include "fused_pointwise.h"

enum { ROW_KERNEL_CONSTANTS = 7, ROW_KERNEL_SUMS = 5, ROW_KERNEL_MEAN = 5 };

/* What a row kernel does, in this order. */
enum {
    ROW_NORM = 1 << 0, /* of x[0] */
    ROW_GRAD = 1 << 1, /* norm_grad of x[0] and dy x[1] or what there is */
    ROW_ADD = 1 << 2,  /* x[0] or what there is, and x[1] */
    ROW_RELU = 1 << 3,
    ROW_MASK = 1 << 4, /* by x[2] > 0 */
    ROW_OUT = 1 << 5,  /* written to y */
    ROW_SUM = 1 << 6,
    ROW_NORM_SUMS = 1 << 7,      /* with x[3] */
    ROW_MORE_NORM_SUMS = 1 << 8, /* with x[4] */
    ROW_STATS = 1 << 9,
    ROW_NORM_MASK = 1 << 10, /* x[1] where norm(x[0]) > 0 */
    ROW_NORM_OUT = 1 << 11   /* relu(norm(x[0])) is written to y, and sums are of what is masked */
};

/* How many pairs of sums over columns it has: those of each NORM_SUMS, or of STATS. */
static inline int row_kernel_sum_pairs(int bits)
{
    return bits & ROW_MORE_NORM_SUMS ? 2 : (bits & (ROW_NORM_SUMS | ROW_STATS)) != 0;
}

/* The rows of a kernel's loop, from where it starts: `width` columns of each; several rows have
 * ROW_KERNEL_WIDTH at least, as have constants and sums. */
typedef struct row_kernel_args {
    ptrdiff_t rows, row, width;
    ptrdiff_t y_row;                    /* y's rows may lie elsewhere than x's */
    const char *x[ROW_KERNEL_OPERANDS]; /* NULL: not read */
    char *y;
    /* Of columns; NULL: none. Constants: mean, scale; NORM, NORM_MASK: beta; GRAD: two more; from
     * ROW_KERNEL_MEAN on those of NORM_SUMS, or STATS' shift. Sums: SUM's, then two of each
     * NORM_SUMS, or STATS' moments. */
    const float *constant[ROW_KERNEL_CONSTANTS];
    float *sum[ROW_KERNEL_SUMS];
} row_kernel_args;

/* ---- row_kernel.c, per instruction set and type ---- */

row_kernel direct_row_kernel_f32_base, direct_row_kernel_f32_avx2, direct_row_kernel_f32_avx512,
    direct_row_kernel_bf16_base, direct_row_kernel_bf16_avx2, direct_row_kernel_bf16_avx512,
    direct_row_kernel_bf16_avx512_bf16;

/* ---- pattern.c ---- */

/* Finds the row kernel of p, or else those of its nodes, and what they read. */
void fused_find_row_kernels(fused_group *p);

#endif
