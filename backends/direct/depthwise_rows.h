/* depthwise_rows.h - rows between memory and the first cache: see depthwise.h. */
#ifndef DIRECT_DEPTHWISE_ROWS_H
#define DIRECT_DEPTHWISE_ROWS_H

#include "depthwise.h"
#include "depthwise_grid.h"

typedef struct { /* what a thread works on: a chunk of an image */
    const depthwise *d;
    depthwise_chunk chunk;
    const void *from; /* the image that windows read */
    real *ring;       /* prepared rows; */
    ptrdiff_t *held;  /* which, by slot; -1: none */
} depthwise_image;

/* Zeroes the ring, of which only the inside of rows is written, and forgets what it held. */
void REAL(depthwise_clear)(const depthwise_image *p);
void REAL(depthwise_forget)(const depthwise_image *p);
/* Pixel 0 of a row of `from`: in memory, or in the ring, where it is prepared if it is not there.
 */
const real *REAL(depthwise_row)(const depthwise_image *p, ptrdiff_t row);
/* Where a tap reads pixel 0 of its phase, relative to that. */
ptrdiff_t REAL(depthwise_offset)(const depthwise_image *p, const depthwise_tap *t);
/* Runs the grids that all taps of a run make on row `to`; returns how many kernel rows there were.
 * g: w[0] is the chunk's filter (or its sums), y pixel 0 of the run; y_step, period, vectors. */
int REAL(depthwise_sum)(const depthwise_image *p, ptrdiff_t to, const depthwise_run *r, grid *g);
int REAL(depthwise_correlate)(const depthwise_image *p, ptrdiff_t to, const depthwise_run *r,
                              grid *g);

/* If d->fetches: fetches the pixels of row `at` of y, dx or dy; and, if rows are read in place, of
 * those rows of `from` that row `at` is the first to read. */
void REAL(depthwise_fetch)(const depthwise_image *p, const real *to, ptrdiff_t at);
/* n elements to reals. */
void REAL(depthwise_widen)(const depthwise *d, ptrdiff_t n, real *to, const void *from);
/* A row of dy to reals. */
void REAL(depthwise_load)(const depthwise_image *p, real *to, const void *dy);
/* Results of all phases, rows[phase] one buffer after the other, to row `to`. */
void REAL(depthwise_store)(const depthwise_image *p, void *to, real *rows);

#endif
