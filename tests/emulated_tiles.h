/* emulated_tiles.h - AMX's tiles in plain C, for the kernels that use them: the asan variant
 * (variants/asan.ninja) and mutants (tests/mutants/trees.py) include this before them, so they are
 * tested on any CPU with avx512_bf16, and AddressSanitizer sees each byte that a tile loads and
 * stores, which it does not of the instructions. What an instruction takes for an error ends the
 * test. Formulas are those of Intel's manual of the instructions (volume 2, LDTILECFG and
 * TDPBF16PS). */
#ifndef TESTS_EMULATED_TILES_H
#define TESTS_EMULATED_TILES_H

#if defined(__x86_64__)
#define EMULATED_TILES
#endif

#if defined(__AVX512F__)
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_EMULATED = 8, EMULATED_ROWS = 16, EMULATED_ROW = 64 };

/* Tile state of each thread and of each file that includes this header, which configures its tiles
 * itself. */
static _Thread_local struct {
    int is_configured, rows[N_EMULATED], row_bytes[N_EMULATED];
    _Alignas(64) char tile[N_EMULATED][EMULATED_ROWS][EMULATED_ROW];
} emulated;

static inline void emulated_expect(int holds, const char *fault)
{
    if (holds)
        return;
    fprintf(stderr, "emulated tiles: %s\n", fault);
    abort();
}

static inline void emulated_need(int i)
{
    emulated_expect(emulated.is_configured && emulated.rows[i] > 0, "this tile has no shape");
}

static inline void emulated_release(void) { memset(&emulated, 0, sizeof emulated); }

/* 64 bytes: palette, first row, 14 zeros, the bytes of 16 tiles' rows, their numbers of rows. */
static inline void emulated_configure(const void *shapes)
{
    enum { PALETTE = 0, FIRST_ROW = 1, ROW_BYTES = 16, ROWS = 48 };
    unsigned char s[EMULATED_ROW];
    memcpy(s, shapes, sizeof s);
    emulated_release();
    emulated_expect(s[PALETTE] == 1 && s[FIRST_ROW] == 0, "not palette 1 from the first row on");
    for (int i = FIRST_ROW + 1; i < ROW_BYTES; i++)
        emulated_expect(s[i] == 0, "reserved bytes are not zero");
    for (int i = 0; i < EMULATED_ROWS; i++) {
        const int bytes = s[ROW_BYTES + 2 * i] | s[ROW_BYTES + 2 * i + 1] << 8, rows = s[ROWS + i];
        emulated_expect(i < N_EMULATED || (bytes == 0 && rows == 0), "a shape of a ninth tile");
        emulated_expect(bytes <= EMULATED_ROW && rows <= EMULATED_ROWS, "a tile is too large");
        emulated_expect((bytes == 0) == (rows == 0), "a tile has no rows, or empty ones");
        if (i >= N_EMULATED)
            continue;
        emulated.rows[i] = rows;
        emulated.row_bytes[i] = bytes;
    }
    emulated.is_configured = 1;
}

static inline void emulated_zero(int i)
{
    emulated_need(i);
    memset(emulated.tile[i], 0, sizeof emulated.tile[i]);
}

static inline void emulated_load(int i, const void *src, size_t stride)
{
    emulated_zero(i);
    for (int row = 0; row < emulated.rows[i]; row++)
        memcpy(emulated.tile[i][row], (const char *)src + (size_t)row * stride,
               (size_t)emulated.row_bytes[i]);
}

static inline void emulated_store(int i, void *dst, size_t stride)
{
    emulated_need(i);
    for (int row = 0; row < emulated.rows[i]; row++)
        memcpy((char *)dst + (size_t)row * stride, emulated.tile[i][row],
               (size_t)emulated.row_bytes[i]);
}

/* The first and the second one of each pair of bf16 numbers, as f32. */
static inline __m512 emulated_first(__m512i pairs)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
}

static inline __m512 emulated_second(__m512i pairs)
{
    return _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(-0x10000)));
}

/* A row of `sums` += a row of `a` times `b`. First ones and second ones are summed apart, from
 * zero. Not inlined, so that it is computed as the register says that its caller sets; it reads
 * no memory but the tiles, which the sanitizers need not look at. */
static __attribute__((noinline, no_sanitize("address", "undefined"))) void
emulated_add_row(int sums, int a, int b, int row)
{
    __m512 first = _mm512_setzero_ps(), second = first;
    for (int k = 0; k < emulated.row_bytes[a] / 4; k++) {
        int32_t pair;
        memcpy(&pair, emulated.tile[a][row] + 4 * k, sizeof pair);
        const __m512i x = _mm512_set1_epi32(pair), y = _mm512_load_si512(emulated.tile[b][k]);
        first = _mm512_fmadd_ps(emulated_first(x), emulated_first(y), first);
        second = _mm512_fmadd_ps(emulated_second(x), emulated_second(y), second);
    }
    char *sum = emulated.tile[sums][row];
    const __mmask16 some = (__mmask16)((1U << emulated.row_bytes[sums] / 4) - 1);
    _mm512_mask_store_ps(sum, some,
                         _mm512_add_ps(_mm512_load_ps(sum), _mm512_add_ps(first, second)));
}

/* Subnormal numbers are zero, in what is read and in what comes out, whatever the thread says. */
static inline void emulated_multiply(int sums, int a, int b)
{
    emulated_need(sums);
    emulated_need(a);
    emulated_need(b);
    emulated_expect(sums != a && sums != b && a != b, "a product's tiles are not three");
    emulated_expect(emulated.rows[sums] == emulated.rows[a] &&
                        emulated.row_bytes[sums] == emulated.row_bytes[b] &&
                        emulated.row_bytes[a] == 4 * emulated.rows[b] &&
                        emulated.row_bytes[sums] % 4 == 0,
                    "the tiles of a product do not fit");
    const unsigned before = _mm_getcsr(), flush_and_zero = 0x8040, round_to_nearest = 0x1f80;
    _mm_setcsr(flush_and_zero | round_to_nearest);
    for (int row = 0; row < emulated.rows[a]; row++)
        emulated_add_row(sums, a, b, row);
    _mm_setcsr(before);
}

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#define _tile_loadconfig emulated_configure
#define _tile_release emulated_release
#define _tile_zero emulated_zero
#define _tile_loadd emulated_load
#define _tile_stored emulated_store
#define _tile_dpbf16ps emulated_multiply
#endif

#endif
