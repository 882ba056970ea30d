/* bf16_vectors.h - vectors of bf16 in registers: numbers as sums of two, and a transpose; for files
 * compiled for AVX-512.
 *
 * f32 as the sum of two bf16: `first` is the nearest to it and `second` the nearest to
 * the remainder. The relative error is at most 2^-17; for numbers below 2^-109 the absolute
 * error is up to 2^-126. Numbers from 2^50 on, Inf and NaN cannot be split: with all others, a
 * sum of less than 2^27 products stays within f32, whatever their order. For AVX-512 with
 * avx512_bf16. */
#ifndef DIRECT_BF16_VECTORS_H
#define DIRECT_BF16_VECTORS_H

#include <immintrin.h>
#include <stdint.h>

typedef struct {
    __m256i first, second;
} bf16_terms;

__attribute__((target("avx512bf16"))) static inline bf16_terms split_16(__m512 v)
{
    const __m256i first = (__m256i)_mm512_cvtneps_pbh(v);
    const __m512i as_f32 = _mm512_slli_epi32(_mm512_cvtepu16_epi32(first), 16);
    const __m512 left = _mm512_sub_ps(v, _mm512_castsi512_ps(as_f32));
    return (bf16_terms){first, (__m256i)_mm512_cvtneps_pbh(left)};
}

/* Returns the mask of those of 16 numbers that cannot be split. */
static inline __mmask16 without_terms(__m512 v)
{
    const __m512i magnitude =
        _mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(INT32_MAX));
    return _mm512_cmpge_epu32_mask(magnitude, _mm512_set1_epi32(0x58800000));
}

/* Transposes 16x16 words of 32 bits: row i, column j becomes row j, column i. */
static inline void transpose_words(__m512i m[16])
{
    __m512i t[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(m[i], m[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(m[i], m[i + 1]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; i += 4)
#pragma GCC unroll 2
        for (int k = 0; k < 2; k++) {
            m[i + 2 * k] = _mm512_unpacklo_epi64(t[i + k], t[i + k + 2]);
            m[i + 2 * k + 1] = _mm512_unpackhi_epi64(t[i + k], t[i + k + 2]);
        }
        /* m[4g + k] has column k of each quarter, of rows 4g to 4g + 3 */
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        t[k] = _mm512_shuffle_i32x4(m[k], m[4 + k], 0x88);
        t[4 + k] = _mm512_shuffle_i32x4(m[k], m[4 + k], 0xdd);
        t[8 + k] = _mm512_shuffle_i32x4(m[8 + k], m[12 + k], 0x88);
        t[12 + k] = _mm512_shuffle_i32x4(m[8 + k], m[12 + k], 0xdd);
    }
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        m[k] = _mm512_shuffle_i32x4(t[k], t[8 + k], 0x88);
        m[8 + k] = _mm512_shuffle_i32x4(t[k], t[8 + k], 0xdd);
        m[4 + k] = _mm512_shuffle_i32x4(t[4 + k], t[12 + k], 0x88);
        m[12 + k] = _mm512_shuffle_i32x4(t[4 + k], t[12 + k], 0xdd);
    }
}

#endif
