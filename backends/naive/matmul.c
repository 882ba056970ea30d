/* matmul.c - y = op(a) op(b) in tiles of ROWS x COLS results.
 *
 * A tile's sums stay in A until they are stored, so they are rounded once. DEPTH rows of op(b)
 * at a time are copied to a block of A: transposes and conversions then cost once per tile, and
 * the innermost loop is contiguous. Every result adds its products in the order of k. */
#include "kernels.h"
#include "walk.h"

enum { ROWS = 16, COLS = 32, DEPTH = 64 };

/* A matrix after op(): element (i, j) is at data[i * row + j * col]. */
typedef struct {
    const T *data;
    int64_t row, col;
} matrix;

static matrix view(const void *data, adj_shape shape, int64_t transpose)
{
    int64_t row = shape.dim[1], col = 1;
    return transpose ? (matrix){data, col, row} : (matrix){data, row, col};
}

/* Sets block[k][j] = b(first_k + k, first_j + j), zero past b's columns. */
static void load_block(A block[DEPTH][COLS], matrix b, int64_t first_k, int64_t depth,
                       int64_t first_j, int64_t cols)
{
    for (int64_t k = 0; k < depth; k++) {
        const T *row = b.data + (first_k + k) * b.row + first_j * b.col;
        for (int64_t j = 0; j < cols; j++)
            block[k][j] = ld(&row[j * b.col]);
        for (int64_t j = cols; j < COLS; j++)
            block[k][j] = 0;
    }
}

/* Adds a[k] * block[k][j] to sum[j], in the order of k. */
static void add_row_products(A sum[COLS], const T *a, int64_t step, const A block[DEPTH][COLS],
                             int64_t depth)
{
    for (int64_t k = 0; k < depth; k++) {
        A v = ld(&a[k * step]);
        for (int64_t j = 0; j < COLS; j++)
            sum[j] += v * block[k][j];
    }
}

static void tile(matrix a, matrix b, int64_t inner, int64_t i0, int64_t rows, int64_t j0,
                 int64_t cols, T *y, int64_t y_row)
{
    A sum[ROWS][COLS] = {{0}}, block[DEPTH][COLS];

    for (int64_t k0 = 0; k0 < inner; k0 += DEPTH) {
        int64_t depth = inner - k0 < DEPTH ? inner - k0 : DEPTH;
        load_block(block, b, k0, depth, j0, cols);
        for (int64_t i = 0; i < rows; i++)
            add_row_products(sum[i], a.data + (i0 + i) * a.row + k0 * a.col, a.col,
                             (const A(*)[COLS])block, depth);
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            st(&y[(i0 + i) * y_row + j0 + j], sum[i][j]);
}

adj_status KERNEL(matmul)(const adj_call *c)
{
    const adj_node *node = c->group->node[0];
    const adj_matmul_attrs *t = node->attrs;
    adj_shape shape = node->in[0]->type.shape;
    matrix a = view(operand(c, 0), shape, t->transpose_a);
    matrix b = view(operand(c, 1), node->in[1]->type.shape, t->transpose_b);
    int64_t m = node->type.shape.dim[0], n = node->type.shape.dim[1];
    int64_t inner = shape.dim[t->transpose_a ? 0 : 1];
    int64_t row_tiles = (m + ROWS - 1) / ROWS, col_tiles = (n + COLS - 1) / COLS;
    T *y = c->out[0];

#pragma omp parallel for if ((double)m * (double)n * (double)inner >= NAIVE_PARALLEL)
    for (int64_t u = 0; u < row_tiles * col_tiles; u++) {
        int64_t i0 = u / col_tiles * ROWS, j0 = u % col_tiles * COLS;
        tile(a, b, inner, i0, m - i0 < ROWS ? m - i0 : ROWS, j0, n - j0 < COLS ? n - j0 : COLS, y,
             n);
    }
    return ADJ_OK;
}
