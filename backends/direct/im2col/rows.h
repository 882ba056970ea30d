/* rows.h - what im2col.h's products are made of and become: elements of either
 * type, panels, windows side by side. */
#ifndef DIRECT_IM2COL_ROWS_H
#define DIRECT_IM2COL_ROWS_H

#include "im2col.h"
#include "block.h"

/* Bytes of n elements as the tensors have them. */
static inline ptrdiff_t im2col_bytes(const im2col *d, ptrdiff_t n)
{
    return n * (ptrdiff_t)adj_dtype_size(d->dtype);
}

/* n elements of a tensor to reals, and back. */
void REAL(im2col_load)(const im2col *d, ptrdiff_t n, real *dst, const void *src);
void REAL(im2col_store)(const im2col *d, ptrdiff_t n, void *dst, const real *src);
/* The filter as panels of dx's product: a row for each output, taps beyond the last zero. */
void REAL(im2col_panels)(const im2col *d, real *dst, const void *w);

typedef struct { /* rows of an image of x with zeros around, for windows to be taken from */
    const im2col *d;
    const char *x; /* all images */
    real *ring;    /* the last of its rows is zero */
    ptrdiff_t *cached_row;
} im2col_window;

/* Zeroes the ring, of which only the inside of rows is written. */
void REAL(im2col_clear)(const im2col_window *s);
/* Windows of n pixels, from pixel `first` of all images' y on, in order; n <= d->chunk. Prefetches
 * meanwhile so many pixels of dy from `prefetch` on, if it is not NULL. */
void REAL(im2col_gather)(const im2col_window *s, ptrdiff_t first, ptrdiff_t n, real *dst,
                         const char *prefetch);

typedef struct { /* what a row of dx is made of */
    int rows;
    const real *src[IM2COL_K]; /* gathered rows, at the tap that the span begins with */
    ptrdiff_t pixels;
    real *planes;
} im2col_sum;

/* Writes the sums of spans to the planes, pixel i's at i*sw*C. */
void REAL(col2im)(const im2col *d, const im2col_sum *s);

#endif
