/* micro_gemm.h - products of small matrices, a block of the result in registers: rows by vectors of
 * columns. Compiled for f32 and f64. */
#ifndef DIRECT_MICRO_GEMM_H
#define DIRECT_MICRO_GEMM_H

#include <stddef.h>

#include "element.h"

enum { MICRO_GEMM_VECTORS = 4 };

/* c[i][j] = (what is there, if add, +) sum over k of a[i][k] b[k][j]. a may be in several parts of
 * `depth` columns each, `more_at` from the first; b's rows go on from one part to the next. */
typedef struct {
    ptrdiff_t rows, depth;
    ptrdiff_t vectors;   /* of a row of b and c, up to MICRO_GEMM_VECTORS */
    int a_is_transposed; /* a[k][i] instead; pitches are elements from a row to the next */
    const real *a, *b;
    const ptrdiff_t *more_at; /* elements from a on */
    ptrdiff_t more;
    real *c;
    ptrdiff_t a_pitch, b_pitch, c_pitch;
    int add;
    /* Added to the sums before they are stored, first the one, to each row, and then the other;
     * NULL: nothing. Then, if has_relu, negative ones become 0, and a NaN stays one. Not where a is
     * transposed. */
    const real *bias, *addend;
    ptrdiff_t addend_pitch;
    int has_relu;
    /* c is in no cache: unless a is transposed its rows are prefetched, of a large block the first
     * `depth` at most. */
    int c_is_cold;
    /* What is prefetched meanwhile: so many bytes for each row of c, a line or two for each k, as a
     * core waits where it asks for many lines at once; where there are more, before a block. NULL:
     * nothing; else depth > 0. */
    const char *prefetch;
    ptrdiff_t prefetch_bytes;
} micro_gemm;

/* The order of a sum is that of k, one part of a after the other. */
void REAL_TYPED(micro_gemm)(const micro_gemm *p);

#endif
