/* reduce.h - reductions over any set of axes.
 *
 * Results are computed LANES at a time if the innermost axis that is not reduced is contiguous
 * in x, so that rows of x are read in order; each result is accumulated in A by one thread, in
 * x's order. */
#ifndef NAIVE_REDUCE_H
#define NAIVE_REDUCE_H

#include "kernels.h"
#include "walk.h"

enum { LANES = 16 };

/* Accumulates x[i * step + l] into acc[l], for i < n and l < lanes. */
typedef void accumulate_rows(A acc[], const T *x, int64_t lanes, int64_t n, int64_t step);

static inline void sum_rows(A acc[], const T *x, int64_t lanes, int64_t n, int64_t step)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t l = 0; l < lanes; l++)
            acc[l] += ld(&x[i * step + l]);
}

/* Sets y to the accumulated x / divisor; bit d of axes is set if axis d of shape is reduced. */
static inline void reduce(const T *x, adj_shape shape, int64_t axes, A start,
                          accumulate_rows *accumulate, A divisor, T *y)
{
    walk kept = walk_new(), reduced = walk_new();
    int64_t elems = adj_shape_elems(shape), step = 1;

    for (int64_t d = shape.rank - 1; d >= 0; d--) {
        walk_add(axes >> d & 1 ? &reduced : &kept, shape.dim[d], step, 0);
        step *= shape.dim[d];
    }
    int64_t width = kept.step[0][0] == 1 ? LANES : 1;
    int64_t row_parts = (kept.dim[0] + width - 1) / width, rows = walk_rows(&kept, 1);
    int64_t rounds = elems > 0 ? walk_rows(&reduced, 1) : 0; /* no elements: start */

#pragma omp parallel for if (elems >= NAIVE_PARALLEL)
    for (int64_t u = 0; u < rows * row_parts; u++) {
        int64_t row = u / row_parts, first = u % row_parts * width, at[2], from[2];
        int64_t lanes = kept.dim[0] - first < width ? kept.dim[0] - first : width;
        A acc[LANES];
        for (int64_t l = 0; l < lanes; l++)
            acc[l] = start;
        walk_offset(&kept, 1, row, at);
        for (int64_t r = 0; r < rounds; r++) {
            walk_offset(&reduced, 1, r, from);
            accumulate(acc, x + at[0] + first * kept.step[0][0] + from[0], lanes, reduced.dim[0],
                       reduced.step[0][0]);
        }
        for (int64_t l = 0; l < lanes; l++)
            st(&y[row * kept.dim[0] + first + l], acc[l] / divisor);
    }
}

#endif
