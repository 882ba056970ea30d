/* pack.c - packs both operands of the product for filter_bf16.h. Compiled for AVX-512 only. */
#include "pack.h"

#if HAS_BF16_PRODUCTS

#include "backends/direct/split.h"
#include "backends/direct/transpose.h"

enum {
    LANES = FILTER_BF16_LANES,
    STEP = FILTER_BF16_STEP,
    ENTRY = FILTER_BF16_ENTRY,
    AHEAD = 8 << 10 /* bytes of prefetching ahead; the address may be past the image's end */
};

static const float zeros[LANES];

typedef struct {
    filter_bf16_pixels p;
    __mmask16 channels;
    __m512i largest;    /* largest absolute values */
    __mmask16 no_parts; /* lanes with f32 numbers that cannot be split */
} reader;

/* Both parts of a pixel's channels, or of pairs of channels, in 32-bit words; for bf16 the
 * second parts are zeros. */
typedef struct {
    __m512i first, second;
} words;

static reader reader_of(const filter_bf16_pixels *p)
{
    return (reader){*p, (__mmask16)((1U << p->n) - 1), _mm512_setzero_si512(), 0};
}

/* Returns the channels of pixel i in the low halves. Prefetches, since hardware prefetching
 * stops at page boundaries. */
__attribute__((always_inline, target("avx512bf16"))) static inline words
pixel(reader *r, int is_f32, ptrdiff_t i)
{
    const int32_t at = r->p.at[i];
    const char *src = at >= 0 ? r->p.start + at : (const char *)zeros;
    _mm_prefetch(src + AHEAD, _MM_HINT_T0);
    if (!is_f32)
        return (words){_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(r->channels, src)),
                       _mm512_setzero_si512()};
    const __m512 v = _mm512_maskz_loadu_ps(r->channels, src);
    const split_parts parts = split_16(v);
    r->no_parts |= without_parts(v);
    return (words){_mm512_cvtepu16_epi32(parts.first), _mm512_cvtepu16_epi32(parts.second)};
}

static inline __m512i pair_of(__m512i first, __m512i second)
{
    return _mm512_or_si512(first, _mm512_slli_epi32(second, 16));
}

static inline words pairs_of(words a, words b)
{
    return (words){pair_of(a.first, b.first), pair_of(a.second, b.second)};
}

static inline void look_at(reader *r, __m512i pair)
{
    r->largest = _mm512_max_epu16(r->largest, _mm512_and_si512(pair, _mm512_set1_epi16(0x7fff)));
}

/* True if all are finite: the exponent of Inf and NaN is all ones. */
static int is_finite(const reader *r)
{
    return _mm512_cmpge_epu16_mask(r->largest, _mm512_set1_epi16(0x7f80)) == 0 && r->no_parts == 0;
}

/* These two are compiled for bf16 and for f32. */
__attribute__((always_inline, target("avx512bf16"))) static inline int
pack_pairs(const filter_bf16_pixels *p, int is_f32, ptrdiff_t count, char *pairs)
{
    reader r = reader_of(p);
    words first = pixel(&r, is_f32, 0);
    look_at(&r, first.first);
    for (ptrdiff_t i = 0; i < count; i++) {
        const words second = pixel(&r, is_f32, i + 1), pair = pairs_of(first, second);
        look_at(&r, second.first);
        _mm512_store_si512(pairs + i * ENTRY, pair.first);
        if (is_f32)
            _mm512_store_si512(pairs + p->part + i * ENTRY, pair.second);
        first = second;
    }
    return is_finite(&r);
}

static inline void store_transposed(__m512i pair[LANES], char *tile)
{
    transpose_words(pair);
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        _mm512_store_si512(tile + i * ENTRY, pair[i]);
}

__attribute__((always_inline, target("avx512bf16"))) static inline int
pack_outputs(const filter_bf16_pixels *p, int is_f32, ptrdiff_t count, char *tiles)
{
    reader r = reader_of(p);
    for (ptrdiff_t step = 0; step < count; step++) {
        __m512i first[LANES], second[LANES];
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++) {
            const words pair = pairs_of(pixel(&r, is_f32, step * STEP + 2 * i),
                                        pixel(&r, is_f32, step * STEP + 2 * i + 1));
            look_at(&r, pair.first);
            first[i] = pair.first;
            second[i] = pair.second;
        }
        store_transposed(first, tiles + step * FILTER_BF16_TILE);
        if (is_f32)
            store_transposed(second, tiles + p->part + step * FILTER_BF16_TILE);
    }
    return is_finite(&r);
}

__attribute__((target("avx512bf16"))) int filter_bf16_pack_pairs(const filter_bf16_pixels *p,
                                                                 ptrdiff_t count, char *pairs)
{
    return p->part != 0 ? pack_pairs(p, 1, count, pairs) : pack_pairs(p, 0, count, pairs);
}

__attribute__((target("avx512bf16"))) int filter_bf16_pack_outputs(const filter_bf16_pixels *p,
                                                                   ptrdiff_t count, char *tiles)
{
    return p->part != 0 ? pack_outputs(p, 1, count, tiles) : pack_outputs(p, 0, count, tiles);
}

__attribute__((target("avx512bf16"))) int filter_bf16_pack_dense(const filter_bf16_pixels *p,
                                                                 ptrdiff_t count, char *tiles)
{
    reader r = reader_of(p);
    for (ptrdiff_t i = 0; i < count * STEP; i += 2) {
        const words pair = pairs_of(pixel(&r, 0, i), pixel(&r, 0, i + 1));
        look_at(&r, pair.first);
        _mm512_store_si512(tiles + i / 2 * ENTRY, pair.first);
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
