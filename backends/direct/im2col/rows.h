/* rows.h - what im2col.h's products are made of and become: elements of either
 * type, panels, windows side by side. */
#ifndef DIRECT_CONV_LOWERED_ROWS_H
#define DIRECT_CONV_LOWERED_ROWS_H

#include "im2col.h"
#include "block.h"

/* Bytes of n elements as the tensors have them. */
static inline ptrdiff_t lowered_bytes(const conv_lowered *d, ptrdiff_t n)
{
    return n * (ptrdiff_t)adj_dtype_size(d->dtype);
}

/* n elements of a tensor to reals, and back. */
void REAL(lowered_load)(const conv_lowered *d, ptrdiff_t n, real *to, const void *from);
void REAL(lowered_store)(const conv_lowered *d, ptrdiff_t n, void *to, const real *from);
/* The filter as panels of dx's product: a row for each output, taps beyond the last zero. */
void REAL(lowered_panels)(const conv_lowered *d, real *to, const void *w);

typedef struct { /* rows of an image of x with zeros around, for windows to be taken from */
    const conv_lowered *d;
    const char *x; /* all images */
    real *ring;    /* the last of its rows is zero */
    ptrdiff_t *held;
} lowered_window;

/* Zeroes the ring, of which only the inside of rows is written. */
void REAL(lowered_clear)(const lowered_window *s);
/* Windows of n pixels, from pixel `first` of all images' y on, in order; n <= d->chunk. Fetches
 * meanwhile so many pixels of dy from `fetch` on, if it is not NULL. */
void REAL(lowered_lower)(const lowered_window *s, ptrdiff_t first, ptrdiff_t n, real *to,
                         const char *fetch);

typedef struct { /* what a row of dx is made of */
    int rows;
    const real *from[LOWERED_K]; /* lowered rows, at the tap that the span begins with */
    ptrdiff_t pixels;
    real *layers;
} lowered_sum;

/* Writes the sums of spans to the layers, pixel i's at i*sw*C. */
void REAL(lowered_raise)(const conv_lowered *d, const lowered_sum *s);

#endif
