/* grid.h - the inner loops of depthwise.h: a grid of taps, kernel rows by kernel columns,
 * over the pixels of a row. The grid's weights (or, for filter gradients, its sums) stay in
 * registers.
 *
 * Files that include this are compiled for f32, which take bf16 as well, and for f64. */
#ifndef DIRECT_DEPTHWISE_GRID_H
#define DIRECT_DEPTHWISE_GRID_H

#include <stddef.h>

#include "backends/direct/element.h"

#if defined(ISA_avx512)
enum { GRID = 28 }; /* grid registers of 32 */
#else
enum { GRID = 12 }; /* grid registers of 16 */
#endif
enum {
    GRID_ROWS = 5,
    GRID_COLUMNS = 7,
    GRID_LINES = 4,
    PARTIAL_SUMS = 3 /* independent sums */
};

typedef struct { /* y = sum of w x; if correlate, w += sum over pixels of x y */
    int correlate;
    int rows, columns;                    /* size of the grid */
    const real *x[GRID_LINES][GRID_ROWS]; /* x at pixel 0, for each kernel row; sum: for line 0 */
    ptrdiff_t x_at[GRID_COLUMNS];
    real *w[GRID_ROWS]; /* weights, or sums, of each kernel row */
    ptrdiff_t w_at[GRID_COLUMNS];
    real *y; /* results, or dy, at pixel 0 */
    ptrdiff_t x_step, y_step;
    ptrdiff_t tiled_width; /* lanes from one step to the next */
    ptrdiff_t vectors;     /* vectors in all */
    ptrdiff_t rest;        /* correlate: valid lanes of the last vector */
    int add;               /* sum: add to y */
    int lines;             /* correlate: rows of y, y_line elements apart */
    ptrdiff_t y_line;
} grid;

/* Returns how many kernel rows a grid of that number of columns may have. */
ALWAYS int grid_rows(int columns)
{
    int rows = GRID / columns;
    return rows < GRID_ROWS ? rows : GRID_ROWS;
}

/* Runs the grid; requires rows <= grid_rows(columns). */
void TYPED(depthwise_grid)(const grid *g);

#endif
