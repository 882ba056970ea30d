/* row.h - the maximum of a row of logits and the sum of its exponentials. */
#ifndef NAIVE_ROW_H
#define NAIVE_ROW_H

#include <math.h>

#include "kernels.h"

enum { PARALLEL_ROWS = 1 << 10 }; /* exponentials that justify several threads */

typedef struct {
    A maximum, sum; /* sum of exp(x - maximum): at least 1, NaN if the row has a NaN */
} row_sums;

static inline row_sums row_sums_of(const T *x, ptrdiff_t k)
{
    row_sums s = {ld(x), 0};
    for (ptrdiff_t j = 1; j < k; j++)
        s.maximum = ld(x + j) > s.maximum ? ld(x + j) : s.maximum;
    for (ptrdiff_t j = 0; j < k; j++)
        s.sum += (A)exp(ld(x + j) - s.maximum);
    return s;
}

#endif
