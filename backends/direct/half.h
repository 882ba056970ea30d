/* half.h - conversions between float and bf16 or f16, without branches, so that loops over them
 * vectorize; for files that are compiled once per instruction set. */
#ifndef DIRECT_HALF_H
#define DIRECT_HALF_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "graph/op.h"

static inline float float_of(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static inline uint32_t bits_of(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static inline float widen_bf16(uint16_t v) { return float_of((uint32_t)v << 16); }

/* Rounds to nearest even; NaN stays NaN. */
static inline uint16_t round_bf16(float v)
{
    uint32_t bits = bits_of(v);
    uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
    return (uint16_t)((v != v ? bits | 0x400000u : rounded) >> 16);
}

/* Returns a if the condition holds, else b; a select that compilers do not turn into a branch. */
static inline uint32_t chosen(int first, uint32_t a, uint32_t b)
{
    uint32_t mask = 0u - (uint32_t)first;
    return (a & mask) | (b & ~mask);
}

/* Widens f16. Zero and subnormals are multiples of 2^-24; the exponent of infinity and NaN stays
 * all ones. */
static inline float widen_f16(uint16_t v)
{
    uint32_t rest = v & 0x7fffu, sign = (uint32_t)(v & 0x8000u) << 16;
    uint32_t normal = (rest << 13) + chosen(rest >= 0x7c00u, 0x70000000u, 0x38000000u);
    uint32_t small = bits_of((float)(int32_t)rest * 0x1p-24F);
    return float_of(sign | chosen(rest < 0x0400u, small, normal));
}

/* Rounds to nearest even: 65520 and more to infinity. Below the normal numbers, adding 0.5
 * leaves the rounded multiple of 2^-24 in the low bits. */
static inline uint16_t round_f16(float v)
{
    uint32_t bits = bits_of(v), rest = bits & 0x7fffffffu;
    uint32_t normal = (rest - 0x38000000u + 0x0fffu + (rest >> 13 & 1u)) >> 13;
    uint32_t small = bits_of(float_of(rest) + 0.5F) - 0x3f000000u;
    uint32_t number = chosen(rest < 0x38800000u, small, normal);
    uint32_t large = chosen(rest > 0x7f800000u, 0x7e00u, 0x7c00u);
    number = chosen(rest >= 0x477ff000u, large, number);
    return (uint16_t)((bits >> 16 & 0x8000u) | number);
}

#if defined(__F16C__)
/* Conversion instructions of x86, available with AVX2, by compiler builtins: <immintrin.h> would
 * slow down the compilation of each file for each instruction set. */
enum { F16_VECTOR = 8, F16_TO_NEAREST_EVEN = 0 }; /* elements per instruction; rounding mode */
typedef int16_t f16_vector __attribute__((vector_size(2 * F16_VECTOR), aligned(2), may_alias));
typedef float f32_vector __attribute__((vector_size(4 * F16_VECTOR), aligned(4), may_alias));

/* Converts whole vectors of the n elements; returns the number of elements converted. It is
 * faster than the functions above, and a NaN keeps its payload. */
static inline ptrdiff_t widen_f16_vectors(ptrdiff_t n, float *dst, const uint16_t *src)
{
    ptrdiff_t i = 0;
    for (; i + F16_VECTOR <= n; i += F16_VECTOR)
        *(f32_vector *)(dst + i) = __builtin_ia32_vcvtph2ps256(*(const f16_vector *)(src + i));
    return i;
}

static inline ptrdiff_t round_f16_vectors(ptrdiff_t n, uint16_t *dst, const float *src)
{
    ptrdiff_t i = 0;
    for (; i + F16_VECTOR <= n; i += F16_VECTOR)
        *(f16_vector *)(dst + i) =
            __builtin_ia32_vcvtps2ph256(*(const f32_vector *)(src + i), F16_TO_NEAREST_EVEN);
    return i;
}
#else
static inline ptrdiff_t widen_f16_vectors(ptrdiff_t n, float *dst, const uint16_t *src)
{
    (void)n, (void)dst, (void)src;
    return 0;
}

static inline ptrdiff_t round_f16_vectors(ptrdiff_t n, uint16_t *dst, const float *src)
{
    (void)n, (void)dst, (void)src;
    return 0;
}
#endif

#endif
