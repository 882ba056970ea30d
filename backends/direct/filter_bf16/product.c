/* product.c - packs both operands of filter_bf16.h's product, and multiplies them by AMX tiles or
 * by avx512_bf16. Both sum a few steps in registers, from zero, and add the result to the sums.
 * Compiled for AVX-512 only; functions that need more name their target. */
#include "filter_bf16.h"

#if HAS_BF16_PRODUCTS

#include "backends/direct/bf16_vectors.h"

enum {
    LANES = FILTER_BF16_LANES,
    STEP = FILTER_BF16_STEP,
    ENTRY = FILTER_BF16_ENTRY,
    TILE = FILTER_BF16_TILE,
    ROW = 64,           /* bytes of a tile's row */
    STRIDE = 2 * ENTRY, /* from one pair of a tap's pixels to the next */
    STEP_PAIRS = STEP * ENTRY,
    CACHED_STEPS = 8,
    CACHED_PAIRS = CACHED_STEPS * LANES,
    AHEAD = 8 << 10 /* bytes of prefetching ahead; the address may be past the image's end */
};

/* ---- packing ---- */

static const float zeros[LANES];

typedef struct {
    filter_bf16_pixels p;
    __mmask16 channels;
    __m512i largest;    /* largest absolute values */
    __mmask16 no_terms; /* lanes with f32 numbers that cannot be split */
} reader;

/* Both terms of a pixel's channels, or of pairs of channels, in 32-bit words; for bf16 the
 * second terms are zeros. */
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
    const bf16_terms terms = split_16(v);
    r->no_terms |= without_terms(v);
    return (words){_mm512_cvtepu16_epi32(terms.first), _mm512_cvtepu16_epi32(terms.second)};
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
    return _mm512_cmpge_epu16_mask(r->largest, _mm512_set1_epi16(0x7f80)) == 0 && r->no_terms == 0;
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
            _mm512_store_si512(pairs + p->term + i * ENTRY, pair.second);
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
        store_transposed(first, tiles + step * TILE);
        if (is_f32)
            store_transposed(second, tiles + p->term + step * TILE);
    }
    return is_finite(&r);
}

__attribute__((target("avx512bf16"))) int filter_bf16_pack_pairs(const filter_bf16_pixels *p,
                                                                 ptrdiff_t count, char *pairs)
{
    return p->term != 0 ? pack_pairs(p, 1, count, pairs) : pack_pairs(p, 0, count, pairs);
}

__attribute__((target("avx512bf16"))) int filter_bf16_pack_outputs(const filter_bf16_pixels *p,
                                                                   ptrdiff_t count, char *tiles)
{
    return p->term != 0 ? pack_outputs(p, 1, count, tiles) : pack_outputs(p, 0, count, tiles);
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

/* ---- products ---- */

/* Returns the sums of an output block and a column. */
static inline char *sums_of(const filter_bf16_work *s, ptrdiff_t row, ptrdiff_t column)
{
    return s->sums + row * s->p->sums_row + s->column[column].sums;
}

/* ---- AMX ---- */

static void add_tile(char *sums, const char *tile)
{
    for (ptrdiff_t i = 0; i < TILE; i += ROW)
        _mm512_store_ps(sums + i,
                        _mm512_add_ps(_mm512_load_ps(sums + i), _mm512_load_ps(tile + i)));
}

/* Operand of LDTILECFG. gcc takes a pointer to it for a pointer to its first 8 bytes, and might
 * omit stores to the others. */
static const struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} shapes = {.palette = 1,
            .row_bytes = {ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW},
            .rows = {LANES, LANES, LANES, LANES, LANES, LANES, LANES, LANES}};

__attribute__((target("amx-tile"))) void filter_bf16_begin(void) { _tile_loadconfig(&shapes); }

/* Releases the tiles, so that other code starts in the initial state. */
__attribute__((target("amx-tile"))) void filter_bf16_end(void) { _tile_release(); }

/* Sets tiles 0 to 3 to the products of two tiles with two others, over steps `step` to `end`. */
__attribute__((target("amx-tile,amx-bf16"))) static inline void
add_2x2(const char *const a[2], const char *const b[2], ptrdiff_t step, ptrdiff_t end)
{
    for (; step < end; step++) {
        _tile_loadd(4, a[0] + step * TILE, ROW);
        _tile_loadd(6, b[0] + step * STEP_PAIRS, STRIDE);
        _tile_loadd(5, a[1] + step * TILE, ROW);
        _tile_loadd(7, b[1] + step * STEP_PAIRS, STRIDE);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
}

/* Multiplies two blocks of outputs with two columns, steps `step` to `end`. */
__attribute__((target("amx-tile,amx-bf16"))) static void
multiply_2x2(const filter_bf16_work *s, ptrdiff_t steps, ptrdiff_t row, ptrdiff_t column,
             ptrdiff_t step, ptrdiff_t end)
{
    const char *first = s->tiles + row * steps * TILE;
    const char *const a[2] = {first, first + steps * TILE};
    const char *const b[2] = {s->pairs + s->column[column].pairs,
                              s->pairs + s->column[column + 1].pairs};
    _Alignas(64) char tile[4][TILE];
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    add_2x2(a, b, step, end);
    if (s->p->tiles_term != 0) {
        const char *const a2[2] = {a[0] + s->p->tiles_term, a[1] + s->p->tiles_term};
        const char *const b2[2] = {b[0] + s->p->pairs_term, b[1] + s->p->pairs_term};
        add_2x2(a2, b, step, end);
        add_2x2(a, b2, step, end);
    }
    _tile_stored(0, tile[0], ROW);
    _tile_stored(1, tile[1], ROW);
    _tile_stored(2, tile[2], ROW);
    _tile_stored(3, tile[3], ROW);
    for (int i = 0; i < 4; i++)
        add_tile(sums_of(s, row + i / 2, column + i % 2), tile[i]);
}

/* Sets tiles 0 to 2 to the products of one tile with three others. */
__attribute__((target("amx-tile,amx-bf16"))) static inline void
add_1x3(const char *a, const char *const b[3], ptrdiff_t term, ptrdiff_t step, ptrdiff_t end)
{
    for (; step < end; step++) {
        const ptrdiff_t at = step * STEP_PAIRS + term;
        _tile_loadd(4, a + step * TILE, ROW);
        _tile_loadd(5, b[0] + at, STRIDE);
        _tile_loadd(6, b[1] + at, STRIDE);
        _tile_loadd(7, b[2] + at, STRIDE);
        _tile_dpbf16ps(0, 4, 5);
        _tile_dpbf16ps(1, 4, 6);
        _tile_dpbf16ps(2, 4, 7);
    }
}

/* Multiplies one block of outputs with three columns. */
__attribute__((target("amx-tile,amx-bf16"))) static void
multiply_1x3(const filter_bf16_work *s, ptrdiff_t steps, ptrdiff_t row, ptrdiff_t column,
             ptrdiff_t step, ptrdiff_t end)
{
    const char *a = s->tiles + row * steps * TILE, *b[3];
    for (int i = 0; i < 3; i++)
        b[i] = s->pairs + s->column[column + i].pairs;
    _Alignas(64) char tile[3][TILE];
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    add_1x3(a, b, 0, step, end);
    if (s->p->tiles_term != 0) {
        add_1x3(a + s->p->tiles_term, b, 0, step, end);
        add_1x3(a, b, s->p->pairs_term, step, end);
    }
    _tile_stored(0, tile[0], ROW);
    _tile_stored(1, tile[1], ROW);
    _tile_stored(2, tile[2], ROW);
    for (int i = 0; i < 3; i++)
        add_tile(sums_of(s, row, column + i), tile[i]);
}

/* Multiplies some steps at a time, so that their operands stay in the first cache from one tap
 * to the next. */
static void multiply_tiles(const filter_bf16_work *s, ptrdiff_t steps, ptrdiff_t columns)
{
    for (ptrdiff_t step = 0; step < steps; step += CACHED_STEPS) {
        const ptrdiff_t end = step + CACHED_STEPS < steps ? step + CACHED_STEPS : steps;
        ptrdiff_t row = 0;
        for (; row + 2 <= s->output_blocks; row += 2)
            for (ptrdiff_t column = 0; column < columns; column += 2)
                multiply_2x2(s, steps, row, column, step, end);
        for (; row < s->output_blocks; row++)
            for (ptrdiff_t column = 0; column < columns; column += 3)
                multiply_1x3(s, steps, row, column, step, end);
    }
}

/* ---- avx512_bf16 ---- */

/* Multiplies with one register of sums for each output. */
__attribute__((target("avx512bf16"))) static void multiply_dots(const filter_bf16_work *s,
                                                                ptrdiff_t steps, ptrdiff_t row,
                                                                ptrdiff_t column, ptrdiff_t pair,
                                                                ptrdiff_t end)
{
    const char *a = s->tiles + row * steps * TILE;
    const char *b = s->pairs + s->column[column].pairs;
    char *sums = sums_of(s, row, column);
    __m512 sum[LANES];
#pragma GCC unroll 16
    for (int o = 0; o < LANES; o++)
        sum[o] = _mm512_setzero_ps();
    for (; pair < end; pair++) {
        const __m512bh x = (__m512bh)_mm512_load_si512(b + s->pair_at[pair]);
        const int32_t *dy = (const int32_t *)(const void *)(a + pair * ENTRY);
#pragma GCC unroll 16
        for (int o = 0; o < LANES; o++)
            sum[o] = _mm512_dpbf16_ps(sum[o], (__m512bh)_mm512_set1_epi32(dy[o]), x);
    }
#pragma GCC unroll 16
    for (int o = 0; o < LANES; o++)
        _mm512_store_ps(sums + o * ROW, _mm512_add_ps(_mm512_load_ps(sums + o * ROW), sum[o]));
}

static void multiply_vectors(const filter_bf16_work *s, ptrdiff_t steps, ptrdiff_t columns)
{
    const ptrdiff_t pairs = steps * LANES;
    for (ptrdiff_t pair = 0; pair < pairs; pair += CACHED_PAIRS) {
        const ptrdiff_t end = pair + CACHED_PAIRS < pairs ? pair + CACHED_PAIRS : pairs;
        for (ptrdiff_t row = 0; row < s->output_blocks; row++)
            for (ptrdiff_t column = 0; column < columns; column++)
                multiply_dots(s, steps, row, column, pair, end);
    }
}

void filter_bf16_multiply(const filter_bf16_work *s, ptrdiff_t steps, ptrdiff_t columns)
{
    if (s->p->is_dense)
        multiply_vectors(s, steps, columns);
    else
        multiply_tiles(s, steps, columns);
}

#endif
