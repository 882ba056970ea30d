/* block.h - the inner loops of im2col.h: a block of sums in registers, pixels or
 * taps by vectors.
 *
 * Files that include this are compiled once per instruction set, and for double with
 * -DIM2COL_F64; REAL(f) names the function f compiled for that type. */
#ifndef DIRECT_IM2COL_BLOCK_H
#define DIRECT_IM2COL_BLOCK_H

#include <stddef.h>

#include "backends/direct/isa.h"

#ifdef IM2COL_F64
typedef double real;
#define REAL(f) DIRECT(f##_f64)
#else
typedef float real;
#define REAL(f) DIRECT(f##_f32)
#endif

enum { VECTOR = VECTOR_BYTES / sizeof(real) };

typedef real vector __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(real)), may_alias));

#define ALWAYS static inline __attribute__((always_inline))

/* A matrix of `vectors` vectors a row is cut into panels of so many, the first at `vectors` before
 * the end: whole rows of one panel lie behind each other. */
ALWAYS ptrdiff_t panel_width(ptrdiff_t vectors)
{
    return vectors == 1 ? 1 : vectors % 2 == 1 ? 3 : 2;
}

typedef struct {
    ptrdiff_t rows, depth, vectors; /* of c; of b; of a row of b and c */
    const real *a;                  /* [rows][depth] */
    const real *b;
    real *c;
    ptrdiff_t a_pitch, b_pitch, c_pitch;
    /* what is prefetched meanwhile, as it will be read in many places at once: so many bytes for
     * each row of a; NULL: nothing */
    const char *prefetch;
    ptrdiff_t prefetch_bytes;
} product;

/* c[i][j] = sum over k of a[i][k] b[k][j]; b in panels, without b_pitch. */
void REAL(im2col_multiply)(const product *p);
/* c[i][j] += sum over k of a[k][i] b[k][j] */
void REAL(im2col_correlate)(const product *p);

#endif
