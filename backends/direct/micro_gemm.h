/* micro_gemm.h - products of small matrices, a block of the result in registers: rows by vectors
 * of columns. Compiled for f32 and f64. */
#ifndef DIRECT_MICRO_GEMM_H
#define DIRECT_MICRO_GEMM_H

#include <stddef.h>

#include "element.h"

enum { MICRO_GEMM_VECTORS = 4 };

/* c[i][j] = sum over k of a[i][k] b[k][j], plus the old c[i][j] if add. a may have several slices
 * of `depth` columns each, at offsets `more_at` from the first; b's rows continue from one slice
 * to the next. */
typedef struct {
    ptrdiff_t rows, depth;
    ptrdiff_t vectors;   /* vectors of a row of b and c, up to MICRO_GEMM_VECTORS */
    int a_is_transposed; /* a is a[k][i]; pitches are elements from a row to the next */
    const real *a, *b;
    const ptrdiff_t *more_at; /* offsets in elements from a */
    ptrdiff_t more;
    real *c;
    ptrdiff_t a_pitch, b_pitch, c_pitch;
    int add;
    /* Added to the sums before they are stored: first bias, to each row, then addend; NULL for
     * none. Then, if has_relu, negative sums become 0; NaN stays NaN. Not if a is transposed. */
    const real *bias, *addend;
    ptrdiff_t addend_pitch;
    int has_relu;
    /* c is in no cache: its rows are prefetched unless a is transposed, for a large block at
     * most the first `depth`. */
    int c_is_cold;
    /* Memory to prefetch meanwhile: a number of bytes for each row of c, one or two lines for
     * each k, since a core stalls on many lines at once; the excess before a block. NULL for
     * nothing; else requires depth > 0. */
    const char *prefetch;
    ptrdiff_t prefetch_bytes;
} micro_gemm;

/* Computes the product; sums are in the order of k, one slice of a after the other. */
void REAL_TYPED(micro_gemm)(const micro_gemm *p);

#endif
