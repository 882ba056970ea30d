/* product.c - the products of conv_bf16.h. Compiled for AVX-512; functions that need more name
 * their target. */
#include "tiles.h"

#if HAS_TILES

enum {
    LANES = CONV_BF16_LANES,
    ROW = CONV_BF16_STEP,
    TILE = CONV_BF16_TILE,
    TILES = CONV_BF16_TILES, /* tiles of positions that use one loaded tile of the filter */
    AHEAD = 4 << 10          /* bytes by which dst is prefetched ahead of the stores */
};

/* Configures the tiles: accumulators are 0 to 3; operands are 4 and 5, or 6 and 7 in a segment's
 * last step. */
__attribute__((target("amx-tile"))) void conv_bf16_begin(const conv_bf16_pass *p)
{
    _tile_loadconfig(p->shapes);
}

/* Releases the tiles, so that other code starts in the initial state. */
__attribute__((target("amx-tile"))) void conv_bf16_end(void) { _tile_release(); }

/* Adds to accumulator i a tile of positions, from `src[i] + part` on, times a block of outputs. */
__attribute__((target("amx-tile,amx-bf16"))) static inline void
add_product(const conv_bf16_pass *p, const char *const src[TILES], ptrdiff_t part,
            const char *filter)
{
    const size_t position = (size_t)p->position;
    for (ptrdiff_t i = 0; i < p->h.taps; i++) {
        ptrdiff_t at = p->segment_at[i] + part;
        for (ptrdiff_t k = 0; k < p->whole; k++, at += ROW, filter += TILE) {
            _tile_loadd(5, filter, ROW);
            _tile_loadd(4, src[0] + at, position);
            _tile_dpbf16ps(0, 4, 5);
            _tile_loadd(4, src[1] + at, position);
            _tile_dpbf16ps(1, 4, 5);
            _tile_loadd(4, src[2] + at, position);
            _tile_dpbf16ps(2, 4, 5);
            _tile_loadd(4, src[3] + at, position);
            _tile_dpbf16ps(3, 4, 5);
        }
        if (p->rest > 0) {
            _tile_loadd(7, filter, ROW);
            _tile_loadd(6, src[0] + at, position);
            _tile_dpbf16ps(0, 6, 7);
            _tile_loadd(6, src[1] + at, position);
            _tile_dpbf16ps(1, 6, 7);
            _tile_loadd(6, src[2] + at, position);
            _tile_dpbf16ps(2, 6, 7);
            _tile_loadd(6, src[3] + at, position);
            _tile_dpbf16ps(3, 6, 7);
            filter += TILE;
        }
    }
}

/* Sets sums[i] to the product of a tile of positions, from src[i] on, and a block of outputs:
 * one product for bf16, three partial products for f32, without that of the second parts. */
__attribute__((target("amx-tile,amx-bf16"))) static void multiply_4(const conv_bf16_product *p,
                                                                    const char *const src[TILES],
                                                                    const char *filter,
                                                                    char sums[TILES][TILE])
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    add_product(p->pass, src, 0, filter);
    if (p->src_part != 0) {
        add_product(p->pass, src, p->src_part, filter);
        add_product(p->pass, src, 0, filter + p->filter_part);
    }
    _tile_stored(0, sums[0], ROW);
    _tile_stored(1, sums[1], ROW);
    _tile_stored(2, sums[2], ROW);
    _tile_stored(3, sums[3], ROW);
}

/* Rounds to nearest even; NaN stays NaN, as in round_bf16. Tile sums are never subnormal; this
 * instruction would flush subnormal inputs to 0. */
__attribute__((target("avx512bf16"))) static inline __m256i rounded(const char *sum)
{
    return (__m256i)_mm512_cvtneps_pbh(_mm512_load_ps(sum));
}

/* Rounds any number: the sum of a tile's result and a bias may be subnormal. */
static inline __m256i rounded_any(__m512 v)
{
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i up = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_mask_mov_epi32(up, nan, quiet), 16));
}

static inline __m512 bias_of(const conv_bf16_product *p, ptrdiff_t block, __mmask16 some)
{
    if (p->bias == NULL)
        return _mm512_setzero_ps();
    if (p->src_part != 0)
        return _mm512_maskz_loadu_ps(some, p->bias + block * LANES * 4);
    const __m256i half = _mm256_maskz_loadu_epi16(some, p->bias + block * LANES * 2);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

typedef enum { BF16, BF16_WITH_BIAS, F32 } result;

/* Computes block `block` of the outputs of positions from `first` on; compiled for each output
 * type. */
__attribute__((always_inline, target("avx512bf16,prfchw"))) static inline void
store_as(result kind, const conv_bf16_product *p, ptrdiff_t first, ptrdiff_t block,
         char sums[TILES][TILE])
{
    const ptrdiff_t left = (p->positions < p->end * LANES ? p->positions : p->end * LANES) - first;
    const ptrdiff_t all = (ptrdiff_t)TILES * LANES, n = left < all ? left : all;
    const ptrdiff_t outputs = p->outputs - block * LANES;
    const __mmask16 some = outputs < LANES ? (__mmask16)((1U << outputs) - 1) : 0xffff;
    const __m512 bias = bias_of(p, block, some);
    const int32_t *at = p->dst_at + first;
    char *dst = p->dst + block * LANES * p->element;
    for (ptrdiff_t i = 0; i < n; i++) {
        const char *sum = sums[0] + i * ROW;
        if (at[i] < 0)
            continue;
        __builtin_prefetch(dst + at[i] + AHEAD, 1, 3);
        if (kind == F32)
            _mm512_mask_storeu_ps(dst + at[i], some, _mm512_add_ps(_mm512_load_ps(sum), bias));
        else if (kind == BF16)
            _mm256_mask_storeu_epi16(dst + at[i], some, rounded(sum));
        else
            _mm256_mask_storeu_epi16(dst + at[i], some,
                                     rounded_any(_mm512_add_ps(_mm512_load_ps(sum), bias)));
    }
}

__attribute__((target("avx512bf16,prfchw"))) static void
store(const conv_bf16_product *p, ptrdiff_t first, ptrdiff_t block, char sums[TILES][TILE])
{
    if (p->src_part != 0)
        store_as(F32, p, first, block, sums);
    else if (p->bias != NULL)
        store_as(BF16_WITH_BIAS, p, first, block, sums);
    else
        store_as(BF16, p, first, block, sums);
}

static void multiply_tiles(const conv_bf16_product *p, ptrdiff_t tile, ptrdiff_t block)
{
    _Alignas(64) char sums[TILES][TILE];
    const char *src[TILES];
    for (ptrdiff_t i = 0; i < TILES; i++)
        src[i] = p->src + p->tile_at[tile + i < p->end ? tile + i : tile];
    multiply_4(p, src, p->filter + block * p->pass->steps * TILE, sums);
    store(p, tile * LANES, block, sums);
}

/* Loops over positions outside if the filter stays in the first cache, else over blocks of the
 * filter. */
void conv_bf16_multiply(const conv_bf16_product *p)
{
    const ptrdiff_t parts = p->src_part != 0 ? 2 : 1;
    if (parts * p->blocks * p->pass->steps <= CONV_BF16_CACHED)
        for (ptrdiff_t tile = p->first; tile < p->end; tile += TILES)
            for (ptrdiff_t block = 0; block < p->blocks; block++)
                multiply_tiles(p, tile, block);
    else
        for (ptrdiff_t block = 0; block < p->blocks; block++)
            for (ptrdiff_t tile = p->first; tile < p->end; tile += TILES)
                multiply_tiles(p, tile, block);
}

#endif
