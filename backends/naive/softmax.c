/* softmax.c - softmax and log_softmax over the last axis; each row is shifted by its maximum m,
 * so that nothing overflows:
 *   softmax      y[j] = exp(x[j] - m) / sum(exp(x - m))
 *   log_softmax  y[j] = x[j] - m - log(sum(exp(x - m))) */
#include <math.h>

#include "kernels.h"
#include "row.h"

typedef struct {
    ptrdiff_t rows, k; /* k: elements of a row */
} matrix;

static matrix matrix_of(const adj_call *c)
{
    adj_shape s = c->group->node[0]->type.shape;
    ptrdiff_t k = s.dim[s.rank - 1];
    return (matrix){adj_shape_elems(s) / k, k}; /* y has elements, so k > 0 */
}

static adj_status run(const adj_call *c, int is_log)
{
    const T *x = operand(c, 0);
    const matrix m = matrix_of(c);
    T *y = c->out[0];

#pragma omp parallel for if (m.rows * m.k > PARALLEL_ROWS)
    for (ptrdiff_t i = 0; i < m.rows; i++) {
        const T *row = x + i * m.k;
        row_sums s = row_sums_of(row, m.k);
        A log_sum = (A)log(s.sum);
        for (ptrdiff_t j = 0; j < m.k; j++)
            st(y + i * m.k + j, is_log ? ld(row + j) - s.maximum - log_sum
                                       : (A)exp(ld(row + j) - s.maximum) / s.sum);
    }
    return ADJ_OK;
}

adj_status KERNEL(softmax)(const adj_call *c) { return run(c, 0); }
adj_status KERNEL(log_softmax)(const adj_call *c) { return run(c, 1); }
