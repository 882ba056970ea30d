/* depthwise_sum.h - the inner loops of depthwise.h: a grid of taps, kernel rows by kernel columns,
 * over the pixels of a row. The grid's weights (or, for filter gradients, its sums) stay in
 * registers: each of the functions below is compiled for every size of the grid. */
#ifndef DIRECT_DEPTHWISE_SUM_H
#define DIRECT_DEPTHWISE_SUM_H

#include <stddef.h>

#include "isa.h"

#ifdef DEPTHWISE_F64
typedef double real;
#define REAL(f) DIRECT(f##_f64)
#else
typedef float real;
#define REAL(f) DIRECT(f##_f32)
#endif

#if defined(ISA_avx512)
enum { VECTOR_BYTES = 64, GRID = 28 }; /* of 32 registers */
#elif defined(ISA_avx2)
enum { VECTOR_BYTES = 32, GRID = 12 }; /* of 16 */
#else
enum { VECTOR_BYTES = 16, GRID = 12 };
#endif
enum { VECTOR = VECTOR_BYTES / sizeof(real), GRID_ROWS = 5, GRID_COLUMNS = 7, CHAINS = 3 };

typedef real vector __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(real)), may_alias));

typedef struct {
    int rows, columns;        /* of the grid */
    const real *x[GRID_ROWS]; /* of pixel 0, for each kernel row */
    ptrdiff_t x_at[GRID_COLUMNS];
    real *w[GRID_ROWS]; /* weights, or sums, of each kernel row */
    ptrdiff_t w_at[GRID_COLUMNS];
    real *y; /* results, or dy, of pixel 0 */
    ptrdiff_t x_step, y_step;
    ptrdiff_t period;  /* lanes from one step to the next */
    ptrdiff_t vectors; /* in all */
    int add;           /* to what is in y */
} grid;

#define ALWAYS static inline __attribute__((always_inline))

/* Steps of the column of vectors that starts at this lane. */
ALWAYS ptrdiff_t steps_of(const grid *g, ptrdiff_t lane)
{
    ptrdiff_t across = g->period / VECTOR, whole = g->vectors / across;
    return whole + (lane / VECTOR < g->vectors - whole * across);
}

/* y = sum of w x. A pixel has CHAINS partial sums, as one would wait for itself. */
ALWAYS void sum_grid(const int rows, const int columns, const grid *g)
{
    const ptrdiff_t x_step = g->x_step, y_step = g->y_step;
    ptrdiff_t at[GRID_COLUMNS];
    for (int k = 0; k < columns; k++)
        at[k] = g->x_at[k];
    for (ptrdiff_t lane = 0; lane < g->period; lane += VECTOR) {
        vector w[GRID_ROWS * GRID_COLUMNS];
        const real *x[GRID_ROWS];
        real *y = g->y + lane;
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            x[i] = g->x[i] + lane;
#pragma GCC unroll 8
            for (int k = 0; k < columns; k++)
                w[i * columns + k] = *(const vector *)(g->w[i] + g->w_at[k] + lane);
        }
        for (ptrdiff_t left = steps_of(g, lane); left > 0; left--) {
            vector sum[CHAINS] = {{0}, {0}, {0}};
            if (g->add)
                sum[0] = *(const vector *)y;
#pragma GCC unroll 8
            for (int i = 0; i < rows; i++) {
#pragma GCC unroll 8
                for (int k = 0; k < columns; k++)
                    sum[k % CHAINS] += w[i * columns + k] * *(const vector *)(x[i] + at[k]);
                x[i] += x_step;
            }
            *(vector *)y = sum[0] + sum[1] + sum[2];
            y += y_step;
        }
    }
}

/* w += sum over pixels of x y */
ALWAYS void correlate_grid(const int rows, const int columns, const grid *g)
{
    ptrdiff_t at[GRID_COLUMNS];
    for (int k = 0; k < columns; k++)
        at[k] = g->x_at[k];
    for (ptrdiff_t lane = 0; lane < g->period; lane += VECTOR) {
        vector sum[GRID_ROWS * GRID_COLUMNS];
        const real *x[GRID_ROWS], *y = g->y + lane;
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            x[i] = g->x[i] + lane;
#pragma GCC unroll 8
            for (int k = 0; k < columns; k++)
                sum[i * columns + k] = (vector){0};
        }
        for (ptrdiff_t left = steps_of(g, lane); left > 0; left--) {
            vector dy = *(const vector *)y;
#pragma GCC unroll 8
            for (int i = 0; i < rows; i++) {
#pragma GCC unroll 8
                for (int k = 0; k < columns; k++)
                    sum[i * columns + k] += dy * *(const vector *)(x[i] + at[k]);
                x[i] += g->x_step;
            }
            y += g->y_step;
        }
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
            for (int k = 0; k < columns; k++)
                *(vector *)(g->w[i] + g->w_at[k] + lane) += sum[i * columns + k];
    }
}

ALWAYS void fixed_grid(const int correlate, const int rows, const int columns, const grid *g)
{
    if (correlate)
        correlate_grid(rows, columns, g);
    else
        sum_grid(rows, columns, g);
}

ALWAYS void rows_grid(const int correlate, const int columns, const grid *g)
{
    switch (g->rows) {
    case 1: fixed_grid(correlate, 1, columns, g); break;
    case 2: fixed_grid(correlate, 2, columns, g); break;
    case 3: fixed_grid(correlate, 3, columns, g); break;
    case 4: fixed_grid(correlate, 4, columns, g); break;
    default: fixed_grid(correlate, 5, columns, g); break;
    }
}

/* The grid's loop, compiled for its size. */
ALWAYS void any_grid(const int correlate, const grid *g)
{
    switch (g->columns) {
    case 1: rows_grid(correlate, 1, g); break;
    case 2: rows_grid(correlate, 2, g); break;
    case 3: rows_grid(correlate, 3, g); break;
    case 4: rows_grid(correlate, 4, g); break;
    case 5: rows_grid(correlate, 5, g); break;
    case 6: rows_grid(correlate, 6, g); break;
    default: rows_grid(correlate, 7, g); break;
    }
}

/* How many kernel rows a grid of so many columns may have. */
ALWAYS int grid_rows(int columns)
{
    int rows = GRID / columns;
    return rows < GRID_ROWS ? rows : GRID_ROWS;
}

#endif
