/* pack.c - both operands of the product as filter_bf16.h has them. Compiled for AVX-512 alone. */
#include "pack.h"

#if HAS_BF16_PRODUCTS

#include "backends/direct/transpose.h"

enum {
    LANES = FILTER_BF16_LANES,
    STEP = FILTER_BF16_STEP,
    ENTRY = FILTER_BF16_ENTRY,
    AHEAD = 8 << 10 /* bytes, beyond which lie the next image's pixels, or nobody's */
};

static const uint16_t zeros[LANES];

typedef struct {
    filter_bf16_pixels p;
    __mmask16 channels;
    __m512i largest; /* of the numbers without their signs */
} reader;

static reader reader_of(const filter_bf16_pixels *p)
{
    return (reader){*p, (__mmask16)((1U << p->n) - 1), _mm512_setzero_si512()};
}

/* The channels of pixel i in the low halves. The processor's own prefetching stops at each page. */
static inline __m512i pixel(const reader *r, ptrdiff_t i)
{
    const int32_t at = r->p.at[i];
    const char *src = at >= 0 ? r->p.start + at : (const char *)zeros;
    _mm_prefetch(src + AHEAD, _MM_HINT_T0);
    return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(r->channels, src));
}

static inline __m512i pair_of(__m512i first, __m512i second)
{
    return _mm512_or_si512(first, _mm512_slli_epi32(second, 16));
}

static inline void look_at(reader *r, __m512i pair)
{
    r->largest = _mm512_max_epu16(r->largest, _mm512_and_si512(pair, _mm512_set1_epi16(0x7fff)));
}

/* The exponent of Inf and NaN is all ones. */
static int is_finite(const reader *r)
{
    return _mm512_cmpge_epu16_mask(r->largest, _mm512_set1_epi16(0x7f80)) == 0;
}

int filter_bf16_pack_pairs(const filter_bf16_pixels *p, ptrdiff_t count, char *pairs)
{
    reader r = reader_of(p);
    __m512i first = pixel(&r, 0);
    look_at(&r, first);
    for (ptrdiff_t i = 0; i < count; i++) {
        const __m512i second = pixel(&r, i + 1), pair = pair_of(first, second);
        look_at(&r, second);
        _mm512_store_si512(pairs + i * ENTRY, pair);
        first = second;
    }
    return is_finite(&r);
}

int filter_bf16_pack_outputs(const filter_bf16_pixels *p, ptrdiff_t count, char *tiles)
{
    reader r = reader_of(p);
    for (ptrdiff_t step = 0; step < count; step++) {
        __m512i pair[LANES];
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++) {
            pair[i] = pair_of(pixel(&r, step * STEP + 2 * i), pixel(&r, step * STEP + 2 * i + 1));
            look_at(&r, pair[i]);
        }
        transpose_words(pair);
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++)
            _mm512_store_si512(tiles + step * FILTER_BF16_TILE + i * ENTRY, pair[i]);
    }
    return is_finite(&r);
}

void filter_bf16_add_up(const char *sums, ptrdiff_t pitch, ptrdiff_t n, float *tile)
{
    __m512i m[LANES];
#pragma GCC unroll 16
    for (int o = 0; o < LANES; o++) {
        __m512d low = _mm512_setzero_pd(), high = low;
        for (ptrdiff_t i = 0; i < n; i++) {
            const float *row = (const float *)(const void *)(sums + i * pitch) + o * LANES;
            low = _mm512_add_pd(low, _mm512_cvtps_pd(_mm256_load_ps(row)));
            high = _mm512_add_pd(high, _mm512_cvtps_pd(_mm256_load_ps(row + LANES / 2)));
        }
        m[o] = _mm512_castps_si512(_mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low)),
                                                      _mm512_cvtpd_ps(high), 1));
    }
    transpose_words(m);
#pragma GCC unroll 16
    for (int c = 0; c < LANES; c++)
        _mm512_store_si512(tile + c * LANES, m[c]);
}

#endif
