/* transpose.h - a transpose in registers; for files compiled for AVX-512. */
#ifndef DIRECT_TRANSPOSE_H
#define DIRECT_TRANSPOSE_H

#include <immintrin.h>

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
