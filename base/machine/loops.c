/* loops.c - see loops.h. Sums go from register to register, so that only the reading loop waits
 * for memory. Their values converge, so that none becomes infinite or subnormal. The sums start
 * beyond the limit and differ, and a result made of them is returned, or the compiler would drop
 * some. */
#include "loops.h"

#if defined(ISA_avx512)
#define LOOPS machine_loops_avx512
#define UNIT "avx512f"
enum { VECTOR_BYTES = 64, SUMS = 24 }; /* vector bytes; sums of 32 registers */
#elif defined(ISA_avx2)
#define LOOPS machine_loops_avx2
#define UNIT "avx2"
enum { VECTOR_BYTES = 32, SUMS = 12 }; /* vector bytes; sums of 16 registers */
#else
#define LOOPS machine_loops_base
#if defined(__x86_64__)
#define UNIT "sse2"
enum { VECTOR_BYTES = 16, SUMS = 12 };
#else
#define UNIT "base"
enum { VECTOR_BYTES = 16, SUMS = 24 };
#endif
#endif

enum { LANES = VECTOR_BYTES / sizeof(float) };
typedef float vector __attribute__((vector_size(VECTOR_BYTES)));

static void multiply_add_f32(int64_t turns, float *result)
{
    const vector scale = (vector){0} + 0.5F, shift = (vector){0} + 1.0F;
    vector sum[SUMS];
#pragma GCC unroll 24
    for (int i = 0; i < SUMS; i++)
        sum[i] = shift * (float)(i + 3);
    for (int64_t turn = 0; turn < turns; turn++)
#pragma GCC unroll 24
        for (int i = 0; i < SUMS; i++)
            sum[i] = sum[i] * scale + shift;
    *result = 0;
    for (int i = 0; i < SUMS; i++)
        for (int k = 0; k < LANES; k++)
            *result += sum[i][k];
}

static void read_all(const void *data, size_t bytes, uint64_t *result)
{
    typedef uint64_t words __attribute__((vector_size(VECTOR_BYTES)));
    enum { AT_ONCE = 8 };
    const words *at = data, *end = at + bytes / sizeof(words);
    words sum[AT_ONCE] = {0};
    for (; at < end; at += AT_ONCE)
#pragma GCC unroll 8
        for (int i = 0; i < AT_ONCE; i++)
            sum[i] ^= at[i];
    *result = 0;
    for (int i = 0; i < AT_ONCE; i++)
        for (size_t k = 0; k < sizeof(words) / sizeof *result; k++)
            *result ^= sum[i][k];
}

#if defined(__x86_64__) && defined(ISA_avx512)
#include <immintrin.h>
#include <string.h>

/* Adds pairs of bf16 products to f32: 64 operations an instruction. The sums grow by 2 each
 * iteration, up to 2^25, where they stay. */
__attribute__((target("avx512bf16"))) static void multiply_add_bf16(int64_t turns, float *result)
{
    const __m512bh one = _mm512_cvtne2ps_pbh(_mm512_set1_ps(1), _mm512_set1_ps(1));
    __m512 sum[SUMS / 2];
#pragma GCC unroll 24
    for (int i = 0; i < SUMS / 2; i++)
        sum[i] = _mm512_set1_ps((float)(i + 3));
    for (int64_t turn = 0; turn < turns; turn++)
#pragma GCC unroll 24
        for (int i = 0; i < SUMS / 2; i++)
            sum[i] = _mm512_dpbf16_ps(sum[i], one, one);
    *result = 0;
    for (int i = 0; i < SUMS / 2; i++)
        *result += _mm512_reduce_add_ps(sum[i]);
}

#if __GNUC__ >= 12 /* other compilers lack the target or cannot set it for one function */
__attribute__((target("avx512fp16"))) static void multiply_add_f16(int64_t turns, float *result)
{
    const __m512h scale = _mm512_set1_ph(0.5), shift = _mm512_set1_ph(1);
    __m512h sum[SUMS];
#pragma GCC unroll 24
    for (int i = 0; i < SUMS; i++)
        sum[i] = _mm512_set1_ph(i + 3);
    for (int64_t turn = 0; turn < turns; turn++)
#pragma GCC unroll 24
        for (int i = 0; i < SUMS; i++)
            sum[i] = _mm512_fmadd_ph(sum[i], scale, shift);
    *result = 0;
    for (int i = 0; i < SUMS; i++)
        *result += _mm512_reduce_add_ph(sum[i]);
}
#define F16_LOOP .f16 = {"avx512_fp16", SUMS * 64.0, multiply_add_f16},
#else
#define F16_LOOP
#endif

/* AMX tiles have 16 rows of 64 bytes: 16x32 bf16 times 32x16, added to 16x16 f32. Four sums hide
 * the latency. All tiles are zero; the speed does not depend on the values. */
enum { TILE_ROWS = 16, TILE_ROW = 64, TILES = 8, TILE_SUMS = 4 };

__attribute__((target("amx-tile,amx-bf16"))) static void multiply_add_tiles(int64_t turns,
                                                                            float *result)
{
    struct { /* operand of the instruction LDTILECFG */
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } shape = {.palette = 1};
    float sums[TILE_ROWS * TILE_ROW / sizeof(float)];
    for (int i = 0; i < TILES; i++) {
        shape.row_bytes[i] = TILE_ROW;
        shape.rows[i] = TILE_ROWS;
    }
    _tile_loadconfig(&shape);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(4);
    _tile_zero(5);
    _tile_zero(6);
    _tile_zero(7);
    for (int64_t turn = 0; turn < turns; turn++) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, sums, TILE_ROW);
    _tile_release();
    *result = sums[0];
}

#define HALF_LOOPS                                                                                 \
    .amx_bf16 = {"amx_bf16", TILE_SUMS * 2.0 * 16 * 16 * 32, multiply_add_tiles},                  \
    .bf16 = {"avx512_bf16", SUMS / 2 * 64.0, multiply_add_bf16}, F16_LOOP
#else
#define HALF_LOOPS
#endif

const machine_loops LOOPS = {.f32 = {UNIT, 2.0 * SUMS *LANES, multiply_add_f32},
                             HALF_LOOPS.read = read_all};
