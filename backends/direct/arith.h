/* arith.h - sizes: min, max, rounding up, and places in a scratch. */
#ifndef DIRECT_ARITH_H
#define DIRECT_ARITH_H

#include <stddef.h>

static inline ptrdiff_t min(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }
static inline ptrdiff_t max(ptrdiff_t a, ptrdiff_t b) { return a > b ? a : b; }
static inline ptrdiff_t divide_up(ptrdiff_t a, ptrdiff_t b) { return (a + b - 1) / b; }
static inline ptrdiff_t round_up(ptrdiff_t a, ptrdiff_t b) { return divide_up(a, b) * b; }

/* The offset of so many elements of `each` bytes, on a cache line of their own; *size grows. */
static inline size_t reserve(size_t *size, ptrdiff_t elements, size_t each)
{
    size_t offset = *size;
    *size += ((size_t)elements * each + 63) / 64 * 64;
    return offset;
}

#endif
