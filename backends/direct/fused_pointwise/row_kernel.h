/* row_kernel.h - fused row kernels: the groups that dominate a training step, each as one loop
 * that keeps all intermediate values in registers. loops.c handles any other group, one node
 * after the other over a chunk.
 *
 * A row kernel iterates over rows, WIDTH columns at a time; a column's constants and sums are
 * loaded once, or once for a few rows. If fewer columns remain at the end of a row, the same
 * loop runs over its last WIDTH columns and discards the excess. There are three forms; in the
 * first two all terms but one are optional:
 *
 *   y = relu(norm(x) + a)
 *   d = mask(a + b), or norm_grad(x, d); d's sums
 *   d = dy where norm(x) > 0; d's norm sums with x and, if wanted, y = relu(norm(x)); or
 *     norm_grad(x, d) and its sum
 *
 * Sums are in f32, so a cast of a bf16 d before them changes nothing. */
#ifndef DIRECT_FUSED_POINTWISE_ROW_KERNEL_H
#define DIRECT_FUSED_POINTWISE_ROW_KERNEL_H

#include "fused_pointwise.h"

enum { ROW_KERNEL_CONSTANTS = 7, ROW_KERNEL_SUMS = 5, ROW_KERNEL_MEAN = 5 };

/* Stages of a row kernel, in this order. */
enum {
    ROW_NORM = 1 << 0, /* norm of x[0] */
    ROW_GRAD = 1 << 1, /* norm_grad of x[0]; dy is x[1] or the preceding result */
    ROW_ADD = 1 << 2,  /* x[0] or the preceding result, plus x[1] */
    ROW_RELU = 1 << 3,
    ROW_MASK = 1 << 4, /* by x[2] > 0 */
    ROW_OUT = 1 << 5,  /* written to y */
    ROW_SUM = 1 << 6,
    ROW_NORM_SUMS = 1 << 7,      /* with x[3] */
    ROW_MORE_NORM_SUMS = 1 << 8, /* with x[4] */
    ROW_STATS = 1 << 9,
    ROW_NORM_MASK = 1 << 10, /* x[1] where norm(x[0]) > 0 */
    ROW_NORM_OUT = 1 << 11   /* writes relu(norm(x[0])) to y; sums are of the masked values */
};

/* Returns the pairs of column sums: those of each NORM_SUMS, or of STATS. */
static inline int row_kernel_sum_pairs(int bits)
{
    return bits & ROW_MORE_NORM_SUMS ? 2 : (bits & (ROW_NORM_SUMS | ROW_STATS)) != 0;
}

/* The rows of a kernel's loop: `width` columns of each. If there are several rows, they have at
 * least ROW_KERNEL_WIDTH columns, as have constants and sums. */
typedef struct row_kernel_args {
    ptrdiff_t rows, row, width;
    ptrdiff_t y_row;                    /* y's row pitch may differ from x's */
    const char *x[ROW_KERNEL_OPERANDS]; /* NULL if not read */
    char *y;
    /* Per column; NULL if none. Constants: mean, scale; beta for NORM and NORM_MASK; two more
     * for GRAD; from ROW_KERNEL_MEAN on those of NORM_SUMS, or STATS' shift. Sums: SUM's, then
     * two of each NORM_SUMS, or STATS' moments. */
    const float *constant[ROW_KERNEL_CONSTANTS];
    float *sum[ROW_KERNEL_SUMS];
} row_kernel_args;

/* ---- row_kernel.c, per instruction set and type ---- */

row_kernel direct_row_kernel_f32_base, direct_row_kernel_f32_avx2, direct_row_kernel_f32_avx512,
    direct_row_kernel_bf16_base, direct_row_kernel_bf16_avx2, direct_row_kernel_bf16_avx512,
    direct_row_kernel_bf16_avx512_bf16;

/* ---- pattern.c ---- */

/* Finds the row kernel of p, or else those of its nodes, and their operands. */
void fused_find_row_kernels(fused_group *p);

#endif
