/* split.h - f32 as the sum of two bf16: `first` is the nearest to it and `second` the nearest to
 * the remainder. The relative error is at most 2^-17; for numbers below 2^-109 the absolute
 * error is up to 2^-126. Numbers from 2^50 on, Inf and NaN cannot be split: with all others, a
 * sum of less than 2^27 products stays within f32, whatever their order. For AVX-512 with
 * avx512_bf16. */
#ifndef DIRECT_SPLIT_H
#define DIRECT_SPLIT_H

#include <immintrin.h>
#include <stdint.h>

typedef struct {
    __m256i first, second;
} split_parts;

__attribute__((target("avx512bf16"))) static inline split_parts split_16(__m512 v)
{
    const __m256i first = (__m256i)_mm512_cvtneps_pbh(v);
    const __m512i as_f32 = _mm512_slli_epi32(_mm512_cvtepu16_epi32(first), 16);
    const __m512 left = _mm512_sub_ps(v, _mm512_castsi512_ps(as_f32));
    return (split_parts){first, (__m256i)_mm512_cvtneps_pbh(left)};
}

/* Returns the mask of those of 16 numbers that cannot be split. */
static inline __mmask16 without_parts(__m512 v)
{
    const __m512i magnitude =
        _mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(INT32_MAX));
    return _mm512_cmpge_epu32_mask(magnitude, _mm512_set1_epi32(0x58800000));
}

#endif
