/* copy.h - copies a box of elements between two tensors with different steps; shared by the
 * kernels that only move elements. i32 has the size of f32 and uses its kernels. */
#ifndef NAIVE_COPY_H
#define NAIVE_COPY_H

#include "kernels.h"
#include "walk.h"

/* Sets to[sum of i_d * step1_d] = from[sum of i_d * step0_d] for every index i of the walk. */
static inline void copy_box(const walk *w, const T *from, T *to)
{
    int64_t n = w->dim[0], step0 = w->step[0][0], step1 = w->step[1][0], rows = walk_rows(w, 1);

#pragma omp parallel for if (rows * n >= NAIVE_PARALLEL)
    for (int64_t row = 0; row < rows; row++) {
        int64_t offset[2];
        walk_offset(w, 1, row, offset);
        const T *x = from + offset[0];
        T *y = to + offset[1];
        if (step0 == 1 && step1 == 1)
            memcpy(y, x, (size_t)n * sizeof *y);
        else
            for (int64_t i = 0; i < n; i++)
                y[i * step1] = x[i * step0];
    }
}

/* Returns the walk over a box of the given shape at the origin of two row-major tensors. */
static inline walk box_walk(adj_shape box, adj_shape from, adj_shape to)
{
    walk w = walk_new();
    int64_t step[2] = {1, 1};

    for (int64_t d = box.rank - 1; d >= 0; d--) {
        walk_add(&w, box.dim[d], step[0], step[1]);
        step[0] *= from.dim[d];
        step[1] *= to.dim[d];
    }
    return w;
}

/* Returns the offset of index i in a row-major tensor. */
static inline int64_t index_of(adj_shape i, adj_shape shape)
{
    int64_t offset = 0;
    for (int64_t d = 0; d < shape.rank; d++)
        offset = offset * shape.dim[d] + i.dim[d];
    return offset;
}

#endif
