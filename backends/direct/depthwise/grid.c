/* grid.c - the loops of grid.h, compiled for every size of the grid: one function for each
 * number of columns, since compile time grows faster than a function's size. With -DSMALL_CODE
 * one loop serves all sizes: sanitizer builds would take minutes. */
#include "grid.h"

/* Ranges of vectors: `whole` steps in each, one more in those before lane `longer`. */
typedef struct {
    ptrdiff_t whole, longer;
} extent;

ALWAYS extent extent_of(const grid *g)
{
    ptrdiff_t across = g->tiled_width / VECTOR, whole = g->vectors / across;
    return (extent){whole, (g->vectors - whole * across) * VECTOR};
}

ALWAYS ptrdiff_t steps_of(extent e, ptrdiff_t lane) { return e.whole + (lane < e.longer); }

/* Each pixel has PARTIAL_SUMS independent sums, which hides the latency of additions. The
 * members of *g that the loops need are copied, since stores could alias *g. */
ALWAYS void sum_grid(const int rows, const int columns, const grid *g)
{
    const ptrdiff_t x_step = g->x_step, y_step = g->y_step, tiled_width = g->tiled_width;
    const extent e = extent_of(g);
    const int add = g->add;
    ptrdiff_t at[GRID_COLUMNS];
    for (int k = 0; k < columns; k++)
        at[k] = g->x_at[k];
    for (ptrdiff_t lane = 0; lane < tiled_width; lane += VECTOR) {
        vector w[GRID_ROWS * GRID_COLUMNS];
        const real *x[GRID_ROWS];
        real *y = g->y + lane;
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            x[i] = g->x[0][i] + lane;
#pragma GCC unroll 8
            for (int k = 0; k < columns; k++)
                w[i * columns + k] = *(const vector *)(g->w[i] + g->w_at[k] + lane);
        }
        for (ptrdiff_t left = steps_of(e, lane); left > 0; left--) {
            vector sum[PARTIAL_SUMS] = {{0}, {0}, {0}};
            if (add)
                sum[0] = *(const vector *)y;
#pragma GCC unroll 8
            for (int i = 0; i < rows; i++) {
#pragma GCC unroll 8
                for (int k = 0; k < columns; k++)
                    sum[k % PARTIAL_SUMS] += w[i * columns + k] * *(const vector *)(x[i] + at[k]);
                x[i] += x_step;
            }
            *(vector *)y = sum[0] + sum[1] + sum[2];
            y += y_step;
        }
    }
}

/* Adds a vector of dy times x; if is_cut, only the lanes of `mask`. */
ALWAYS void correlate_vector(const int rows, const int columns, const int is_cut, vector_value dy,
                             const real *const x[], const ptrdiff_t at[], vector_mask mask,
                             vector sum[])
{
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 8
        for (int k = 0; k < columns; k++) {
            vector v = *(const vector *)(x[i] + at[k]);
            if (is_cut)
                v = (vector)((vector_mask)v & mask);
            sum[i * columns + k] += dy * v;
        }
    }
}

/* Correlates over a run. Its last vector is masked: beyond the run dy is 0, but x may have an
 * Inf or NaN that no window reads. */
ALWAYS void correlate_grid(const int rows, const int columns, const grid *g)
{
    const ptrdiff_t x_step = g->x_step, y_step = g->y_step, tiled_width = g->tiled_width;
    const extent e = extent_of(g);
    const ptrdiff_t last = (g->vectors - 1) % (tiled_width / VECTOR) * VECTOR;
    vector_mask mask = {0};
    for (int i = 0; i < VECTOR; i++)
        mask[i] = i < g->rest ? -1 : 0;
    ptrdiff_t at[GRID_COLUMNS];
    for (int k = 0; k < columns; k++)
        at[k] = g->x_at[k];
    for (ptrdiff_t lane = 0; lane < tiled_width; lane += VECTOR) {
        const int is_cut = lane == last && g->rest < VECTOR;
        vector sum[GRID_ROWS * GRID_COLUMNS];
#pragma GCC unroll 35
        for (int i = 0; i < rows * columns; i++)
            sum[i] = (vector){0};
        for (int line = 0; line < g->lines; line++) {
            const real *x[GRID_ROWS], *y = g->y + line * g->y_line + lane;
#pragma GCC unroll 8
            for (int i = 0; i < rows; i++)
                x[i] = g->x[line][i] + lane;
            for (ptrdiff_t left = steps_of(e, lane) - is_cut; left > 0; left--) {
                correlate_vector(rows, columns, 0, *(const vector *)y, x, at, mask, sum);
#pragma GCC unroll 8
                for (int i = 0; i < rows; i++)
                    x[i] += x_step;
                y += y_step;
            }
            if (is_cut)
                correlate_vector(rows, columns, 1, *(const vector *)y, x, at, mask, sum);
        }
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
            for (int k = 0; k < columns; k++)
                *(vector *)(g->w[i] + g->w_at[k] + lane) += sum[i * columns + k];
    }
}

/* Dispatches to a fixed size; sizes that do not fit into registers are not compiled. */
ALWAYS void fixed_grid(const int correlate, const int rows, const int columns, const grid *g)
{
    if (rows > grid_rows(columns))
        return;
    if (correlate)
        correlate_grid(rows, columns, g);
    else
        sum_grid(rows, columns, g);
}

#ifdef SMALL_CODE

void TYPED(depthwise_grid)(const grid *g) { fixed_grid(g->correlate, g->rows, g->columns, g); }

#else

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

static void sum_1(const grid *g) { rows_grid(0, 1, g); }
static void sum_2(const grid *g) { rows_grid(0, 2, g); }
static void sum_3(const grid *g) { rows_grid(0, 3, g); }
static void sum_4(const grid *g) { rows_grid(0, 4, g); }
static void sum_5(const grid *g) { rows_grid(0, 5, g); }
static void sum_6(const grid *g) { rows_grid(0, 6, g); }
static void sum_7(const grid *g) { rows_grid(0, 7, g); }

static void correlate_1(const grid *g) { rows_grid(1, 1, g); }
static void correlate_2(const grid *g) { rows_grid(1, 2, g); }
static void correlate_3(const grid *g) { rows_grid(1, 3, g); }
static void correlate_4(const grid *g) { rows_grid(1, 4, g); }
static void correlate_5(const grid *g) { rows_grid(1, 5, g); }
static void correlate_6(const grid *g) { rows_grid(1, 6, g); }
static void correlate_7(const grid *g) { rows_grid(1, 7, g); }

void TYPED(depthwise_grid)(const grid *g)
{
    static void (*const loops[2][GRID_COLUMNS])(const grid *) = {
        {sum_1, sum_2, sum_3, sum_4, sum_5, sum_6, sum_7},
        {correlate_1, correlate_2, correlate_3, correlate_4, correlate_5, correlate_6,
         correlate_7}};
    loops[g->correlate][g->columns - 1](g);
}

#endif
