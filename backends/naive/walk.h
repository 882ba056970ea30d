/* walk.h - loops over tensors of any rank: axes with sizes and, for up to three tensors, steps in
 * elements.
 *
 * Axes are stored innermost first. Axes of size 1 are omitted, and adjacent axes that all
 * tensors cross in one stride are merged, so contiguous tensors become one axis; a step of 0
 * repeats an element (broadcasting). There is always an axis 0. */
#ifndef NAIVE_WALK_H
#define NAIVE_WALK_H

#include "graph/op.h"

/* Elements from which on a kernel uses several threads. */
enum { NAIVE_PARALLEL = 1 << 15 };
enum { WALKED = 3 }; /* tensors of a walk */

typedef struct {
    int rank;
    int64_t dim[ADJ_MAX_RANK], step[WALKED][ADJ_MAX_RANK];
} walk;

static inline walk walk_new(void) { return (walk){.rank = 1, .dim = {1}}; }

/* Adds the next outer axis. */
static inline void walk_add(walk *w, int64_t dim, const int64_t step[WALKED])
{
    const int last = w->rank - 1, is_first = w->dim[last] == 1; /* axis 0 was a placeholder */
    int is_merged = !is_first;

    if (dim == 1)
        return;
    for (int k = 0; k < WALKED; k++)
        is_merged &= step[k] == w->step[k][last] * w->dim[last];
    if (is_merged) {
        w->dim[last] *= dim;
        return;
    }
    const int axis = is_first ? 0 : w->rank++;
    w->dim[axis] = dim;
    for (int k = 0; k < WALKED; k++)
        w->step[k][axis] = step[k];
}

/* Returns the elements of all axes but axis 0. */
static inline int64_t walk_rows(const walk *w)
{
    int64_t rows = 1;
    for (int d = 1; d < w->rank; d++)
        rows *= w->dim[d];
    return rows;
}

/* Sets the offsets in the tensors of row number `row` of those. */
static inline void walk_offset(const walk *w, int64_t row, int64_t offset[WALKED])
{
    for (int k = 0; k < WALKED; k++)
        offset[k] = 0;
    for (int d = 1; d < w->rank; d++) {
        const int is_last = d + 1 == w->rank; /* row is its index: divisions are slow */
        int64_t i = is_last ? row : row % w->dim[d];
        row = is_last ? 0 : row / w->dim[d];
        for (int k = 0; k < WALKED; k++)
            offset[k] += i * w->step[k][d];
    }
}

#endif
