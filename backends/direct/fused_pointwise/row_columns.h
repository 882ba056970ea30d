/* row_columns.h - loads, rounds and stores ROW_KERNEL_WIDTH columns of a row in registers; for
 * row_kernel.c, in f32 and bf16. */
#ifndef DIRECT_FUSED_POINTWISE_ROW_COLUMNS_H
#define DIRECT_FUSED_POINTWISE_ROW_COLUMNS_H

#if defined(__x86_64__) && defined(ISA_avx512_bf16)
#define HAS_BF16_ROUNDING 1
#include <immintrin.h>
#else
#define HAS_BF16_ROUNDING 0
#endif

#include "backends/direct/element.h"
#include "row_kernel.h"

enum { WIDE = ROW_KERNEL_WIDTH / VECTOR, IS_HALF = sizeof(T) == 2 };

static const uint32_t UPPER = 0xffff0000;

typedef uint32_t words __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
/* Two adjacent columns as one number: of bf16, of f32. */
typedef uint32_t half_pairs __attribute__((vector_size(VECTOR_BYTES), aligned(2), may_alias));
typedef uint64_t pairs __attribute__((vector_size(2 * VECTOR_BYTES), aligned(4), may_alias));

/* ROW_KERNEL_WIDTH columns. For bf16, even indices hold the lower columns of WIDE / 2 vectors of
 * pairs, odd indices the upper ones, so that widening and rounding move no lanes. */
typedef struct {
    vector v[WIDE];
} columns;

ALWAYS columns load(const float *p)
{
    columns c;
    for (int k = 0; k < WIDE; k++)
        c.v[k] = ((const vector *)p)[k];
    return c;
}

ALWAYS void store(float *p, columns c)
{
    for (int k = 0; k < WIDE; k++)
        ((vector *)p)[k] = c.v[k];
}

/* Loads constants or sums of columns. */
ALWAYS columns load_columns(const float *p)
{
    columns c;
    if (!IS_HALF)
        return load(p);
    for (int k = 0; k < WIDE; k += 2) {
        pairs both = ((const pairs *)p)[k / 2];
        c.v[k] = (vector) __builtin_convertvector(both, words);
        c.v[k + 1] = (vector) __builtin_convertvector(both >> 32, words);
    }
    return c;
}

ALWAYS void store_columns(float *p, columns c)
{
    if (!IS_HALF) {
        store(p, c);
        return;
    }
    for (int k = 0; k < WIDE; k += 2)
        ((pairs *)p)[k / 2] = __builtin_convertvector((words)c.v[k], pairs) |
                              __builtin_convertvector((words)c.v[k + 1], pairs) << 32;
}

/* Rounds to nearest even; the bf16 bits are the upper ones. A NaN with ones in all of its lower
 * bits would become infinite or 0, but does not occur: operands have zeros there, and constants
 * are canonical NaNs. Vectors are passed by address, because GCC 14 for aarch64 crashes on
 * arguments and results of these types. */
ALWAYS void round_to_bf16(words *rounded, const vector *v)
{
    words b = (words)*v;
    *rounded = b + 0x7fff + (b >> 16 & 1);
}

#if HAS_BF16_ROUNDING

/* True if avx512_bf16's instruction would flush a number to 0, as it does with subnormal ones. */
ALWAYS int is_flushed(const vector *even, const vector *odd)
{
    enum { SUBNORMAL = 0x20 };
    return (_mm512_fpclass_ps_mask((__m512)*even, SUBNORMAL) |
            _mm512_fpclass_ps_mask((__m512)*odd, SUBNORMAL)) != 0;
}

ALWAYS void round_normal_pairs(words *both, const vector *even, const vector *odd)
{
    static const uint16_t in_pairs[] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                        21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                        11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    const __m512i halves = (__m512i)_mm512_cvtne2ps_pbh((__m512)*odd, (__m512)*even);
    *both = (words)_mm512_permutexvar_epi16(_mm512_loadu_si512(in_pairs), halves);
}

#endif

/* Rounds even and odd columns to nearest even, as pairs. */
ALWAYS void round_pairs(words *both, const vector *even, const vector *odd)
{
    words lower, upper;
#if HAS_BF16_ROUNDING
    if (!is_flushed(even, odd)) {
        round_normal_pairs(both, even, odd);
        return;
    }
#endif
    round_to_bf16(&lower, even);
    round_to_bf16(&upper, odd);
    *both = lower >> 16 | (upper & UPPER);
}

ALWAYS void widen_pairs(vector *even, vector *odd, const words *both)
{
    *even = (vector)(*both << 16);
    *odd = (vector)(*both & UPPER);
}

ALWAYS columns load_row(const void *p, ptrdiff_t at)
{
    columns c;
    if (!IS_HALF)
        return load((const float *)p + at);
    for (int k = 0; k < WIDE; k += 2) {
        words both = ((const half_pairs *)((const uint16_t *)p + at))[k / 2];
        widen_pairs(&c.v[k], &c.v[k + 1], &both);
    }
    return c;
}

/* Rounds the columns to the element type. */
ALWAYS void round_columns(columns *c)
{
    for (int k = 0; k < WIDE && IS_HALF; k += 2) {
        words both;
        round_pairs(&both, &c->v[k], &c->v[k + 1]);
        widen_pairs(&c->v[k], &c->v[k + 1], &both);
    }
}

/* Writes the columns, rounded; returns them as written. */
ALWAYS columns store_row(void *p, ptrdiff_t at, columns c)
{
    if (!IS_HALF) {
        store((float *)p + at, c);
        return c;
    }
    for (int k = 0; k < WIDE; k += 2) {
        words both;
        round_pairs(&both, &c.v[k], &c.v[k + 1]);
        ((half_pairs *)((uint16_t *)p + at))[k / 2] = both;
        widen_pairs(&c.v[k], &c.v[k + 1], &both);
    }
    return c;
}

#endif
