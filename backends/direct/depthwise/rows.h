/* rows.h - moves rows between memory and the caches: see depthwise.h. */
#ifndef DIRECT_DEPTHWISE_ROWS_H
#define DIRECT_DEPTHWISE_ROWS_H

#include "backends/direct/row_ring.h"
#include "depthwise.h"
#include "grid.h"

typedef struct { /* state of a thread: a chunk of an image */
    const depthwise *d;
    depthwise_chunk chunk;
    const char *src;           /* the image that windows read */
    row_ring ring;             /* prepared rows */
    ptrdiff_t at[DEPTHWISE_K]; /* place in a row of each tap's element for pixel 0 of its phase */
} depthwise_image;

typedef struct { /* the rows that the window of a row of dst reads, each with its kernel row */
    int n;
    const real *x[DEPTHWISE_K]; /* column 0 of each row, in memory or in the ring */
    ptrdiff_t kh[DEPTHWISE_K];
} depthwise_window;

/* Begins a chunk. `clear`: zeroes the ring; later only the inside of rows is written. */
void TYPED(depthwise_begin)(depthwise_image *p, depthwise_chunk chunk, int clear);
/* Begins image n of the chunk and empties the ring. */
void TYPED(depthwise_begin_image)(depthwise_image *p, const adj_call *call, ptrdiff_t n);
/* Sets the window of a row of dst; prepares rows that are not in the ring. */
void TYPED(depthwise_look)(const depthwise_image *p, ptrdiff_t dst_row, depthwise_window *w);
/* Runs the grids that cover a window's kernel rows and the taps of a run. With several lines,
 * g->lines windows have the same kernel rows. In g the caller sets: w[0], the chunk's filter (or
 * its sums); y, pixel 0 of the run; correlate, y_step, tiled_width, vectors; lines, y_line. */
void TYPED(depthwise_run_grids)(const depthwise_image *p, const depthwise_window *w,
                                const depthwise_run *r, grid *g);

/* If d->prefetches: prefetches the pixels of row `at` of y, dx or dy; and, if rows are read in
 * place, of those rows of src that row `at` is the first to read. */
void TYPED(depthwise_prefetch)(const depthwise_image *p, const real *dst, ptrdiff_t at);
/* Converts a row of dy to reals. */
void TYPED(depthwise_load)(const depthwise_image *p, real *dst, const void *dy);
/* Stores the results of all phases, rows[phase] one buffer after the other, to a row of the
 * image dst. */
void TYPED(depthwise_store)(const depthwise_image *p, ptrdiff_t row, char *dst, real *rows);

#endif
