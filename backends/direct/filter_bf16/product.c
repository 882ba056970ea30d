/* product.c - the product of filter_bf16.h, by AMX tiles and by avx512_bf16. Both sum a few
 * steps in registers, from zero, and add the result to the sums. */
#include "pack.h"

#if HAS_BF16_PRODUCTS

enum {
    LANES = FILTER_BF16_LANES,
    ENTRY = FILTER_BF16_ENTRY,
    TILE = FILTER_BF16_TILE,
    ROW = 64,           /* bytes of a tile's row */
    STRIDE = 2 * ENTRY, /* from one pair of a tap's pixels to the next */
    STEP_PAIRS = FILTER_BF16_STEP * ENTRY,
    CACHED_STEPS = 8,
    CACHED_PAIRS = CACHED_STEPS * LANES
};

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
    if (s->p->tiles_part != 0) {
        const char *const a2[2] = {a[0] + s->p->tiles_part, a[1] + s->p->tiles_part};
        const char *const b2[2] = {b[0] + s->p->pairs_part, b[1] + s->p->pairs_part};
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
add_1x3(const char *a, const char *const b[3], ptrdiff_t part, ptrdiff_t step, ptrdiff_t end)
{
    for (; step < end; step++) {
        const ptrdiff_t at = step * STEP_PAIRS + part;
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
    if (s->p->tiles_part != 0) {
        add_1x3(a + s->p->tiles_part, b, 0, step, end);
        add_1x3(a, b, s->p->pairs_part, step, end);
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
