/* walk.h - loops over tensors of any rank: axes with sizes and, for two tensors, steps in
 * elements.
 *
 * Axes are stored innermost first. Axes of size 1 are omitted, and adjacent axes that both
 * tensors cross in one stride are merged, so contiguous tensors become one axis; a step of 0
 * repeats an element (broadcasting). There is always an axis 0. */
#ifndef NAIVE_WALK_H
#define NAIVE_WALK_H

#include "graph/op.h"

/* Elements from which on a kernel uses several threads. */
enum { NAIVE_PARALLEL = 1 << 15 };

typedef struct {
    int rank;
    int64_t dim[ADJ_MAX_RANK], step[2][ADJ_MAX_RANK];
} walk;

static inline walk walk_new(void) { return (walk){.rank = 1, .dim = {1}}; }

/* Adds the next outer axis. */
static inline void walk_add(walk *w, int64_t dim, int64_t step0, int64_t step1)
{
    int last = w->rank - 1;

    if (dim == 1)
        return;
    if (w->dim[last] == 1) { /* axis 0 was a placeholder */
        w->dim[0] = dim;
        w->step[0][0] = step0;
        w->step[1][0] = step1;
    } else if (step0 == w->step[0][last] * w->dim[last] &&
               step1 == w->step[1][last] * w->dim[last]) {
        w->dim[last] *= dim;
    } else {
        w->dim[w->rank] = dim;
        w->step[0][w->rank] = step0;
        w->step[1][w->rank++] = step1;
    }
}

/* Returns the elements of all axes but axis 0. */
static inline int64_t walk_rows(const walk *w)
{
    int64_t rows = 1;
    for (int d = 1; d < w->rank; d++)
        rows *= w->dim[d];
    return rows;
}

/* Sets the offsets in both tensors of row number `row` of those. */
static inline void walk_offset(const walk *w, int64_t row, int64_t offset[2])
{
    offset[0] = offset[1] = 0;
    for (int d = 1; d < w->rank; d++) {
        const int is_last = d + 1 == w->rank; /* row is its index: divisions are slow */
        int64_t i = is_last ? row : row % w->dim[d];
        row = is_last ? 0 : row / w->dim[d];
        offset[0] += i * w->step[0][d];
        offset[1] += i * w->step[1][d];
    }
}

#endif
