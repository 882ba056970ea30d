/* rows.h - what im2col.h's products are made of and become: elements of either
 * type, panels, windows side by side. */
#ifndef DIRECT_IM2COL_ROWS_H
#define DIRECT_IM2COL_ROWS_H

#include "backends/direct/micro_gemm.h"
#include "backends/direct/row_ring.h"
#include "im2col.h"

/* A matrix of `vectors` vectors a row is cut into panels of so many, the first at `vectors` before
 * the end. */
ALWAYS ptrdiff_t panel_width(ptrdiff_t vectors)
{
    return vectors == 1 ? 1 : vectors % 2 == 1 ? 3 : 2;
}

/* The filter as panels of dx's product, whole rows of a panel behind each other: a row for each
 * output, taps beyond the last zero. */
void TYPED(im2col_panels)(const im2col *d, real *dst, const void *w);

/* The product over `vectors` vectors of a row of b and c, a panel at a time. b_pitch 0: b is
 * in panels. */
void TYPED(im2col_multiply)(micro_gemm p, ptrdiff_t vectors);

typedef struct { /* rows of an image of x with zeros around, for windows to be taken from */
    const im2col *d;
    const char *x; /* all images */
    row_ring ring; /* the last of its rows is zero */
} im2col_window;

/* Windows of n pixels, from pixel `first` of all images' y on, in order; n <= d->chunk. Prefetches
 * meanwhile so many pixels of dy from `prefetch` on, if it is not NULL. */
void TYPED(im2col_gather)(const im2col_window *s, ptrdiff_t first, ptrdiff_t n, real *dst,
                          const char *prefetch);

typedef struct { /* what a row of dx is made of */
    int rows;
    const real *src[IM2COL_K]; /* gathered rows, at the tap that the span begins with */
    ptrdiff_t pixels;
    real *planes;
} im2col_sum;

/* Writes the sums of spans to the planes, pixel i's at i*sw*C. */
void TYPED(col2im)(const im2col *d, const im2col_sum *s);

#endif
