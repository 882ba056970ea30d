/* arith.h - sizes: min, max, rounding up, offsets in a scratch buffer; sums of segments. */
#ifndef DIRECT_ARITH_H
#define DIRECT_ARITH_H

#include <stddef.h>

static inline ptrdiff_t min(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }
static inline ptrdiff_t max(ptrdiff_t a, ptrdiff_t b) { return a > b ? a : b; }
static inline ptrdiff_t divide_up(ptrdiff_t a, ptrdiff_t b) { return (a + b - 1) / b; }
static inline ptrdiff_t round_up(ptrdiff_t a, ptrdiff_t b) { return divide_up(a, b) * b; }

static inline ptrdiff_t gcd(ptrdiff_t a, ptrdiff_t b) { return b == 0 ? a : gcd(b, a % b); }
static inline ptrdiff_t lcm(ptrdiff_t a, ptrdiff_t b) { return a / gcd(a, b) * b; }

/* Reserves `elements` of `each` bytes, aligned to a cache line: returns their offset and adds
 * their bytes to *size. */
static inline size_t reserve(size_t *size, ptrdiff_t elements, size_t each)
{
    size_t offset = *size;
    *size += ((size_t)elements * each + 63) / 64 * 64;
    return offset;
}

/* Reserves a row_ring of rows of pitch elements. */
static inline size_t reserve_ring(size_t *size, ptrdiff_t slots, ptrdiff_t pitch, size_t each)
{
    size_t offset = reserve(size, slots * pitch, each);
    reserve(size, slots, sizeof(ptrdiff_t));
    return offset;
}

/* Adds the sums of all further segments, in order, to the first one's n sums at total. pitch:
 * elements from one segment's sums to the next. */
static inline void add_segments(double *total, ptrdiff_t n, ptrdiff_t pitch, ptrdiff_t segments)
{
    for (ptrdiff_t k = 1; k < segments; k++) {
        const double *partial = total + k * pitch;
#pragma omp simd
        for (ptrdiff_t i = 0; i < n; i++)
            total[i] += partial[i];
    }
}

#endif
