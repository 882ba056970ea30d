/* prefetch_next.h - prefetches the operands of the next band while this one's products run
 * (filter_gemm.h). */
#ifndef DIRECT_FILTER_GEMM_PREFETCH_NEXT_H
#define DIRECT_FILTER_GEMM_PREFETCH_NEXT_H

#include "backends/direct/arith.h"
#include "backends/direct/micro_gemm.h"

/* The approximate memory that the next band reads first, in elements; 0 for an operand that is
 * not prefetched. */
typedef struct {
    const real *x, *dy;
    ptrdiff_t of_x, of_dy;
} next_band;

/* Prefetches part i of n of the elements. */
static inline void prefetch_part(micro_gemm *m, const real *at, ptrdiff_t elements, ptrdiff_t i,
                                 ptrdiff_t n)
{
    const ptrdiff_t first = elements * i / n, end = elements * (i + 1) / n;
    m->prefetch = (const char *)(at + first);
    m->prefetch_bytes = divide_up((end - first) * (ptrdiff_t)sizeof(real), m->rows);
}

/* Makes product i of n prefetch its portion: of x, then of dy. A single product reads memory in
 * order anyway. */
static inline void prefetch_next(const next_band *b, ptrdiff_t i, ptrdiff_t n, micro_gemm *m)
{
    const ptrdiff_t all = b->of_x + b->of_dy;
    if (n <= 1 || all == 0)
        return;
    ptrdiff_t times_x = n * b->of_x / all;
    if (b->of_x > 0 && b->of_dy > 0)
        times_x = min(max(times_x, 1), n - 1);
    if (times_x > 0 && i < times_x)
        prefetch_part(m, b->x, b->of_x, i, times_x);
    else if (n > times_x)
        prefetch_part(m, b->dy, b->of_dy, i - times_x, n - times_x);
}

#endif
