/* oracle.h - slow references that share no code with the library: the definition, term by term. */
#ifndef ORACLE_H
#define ORACLE_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "graph/op.h"

/* A convolution in small ints; tables name what follows last. */
typedef struct {
    int n, h, w, c;
    int kh, kw, last;   /* filter [kh, kw, in, last]; depthwise: [kh, kw, c, multiplier] */
    int in;             /* 0: c, one group */
    int sh, sw, dh, dw; /* 0: 1 */
    adj_padding padding;
    int pad[4]; /* EXPLICIT: top, bottom, left, right */
    int depthwise;
    adj_format format;
} oracle_conv;

enum oracle_result { ORACLE_Y, ORACLE_DX, ORACLE_DW };

/* Defaults filled in; SAME's pads and the sizes of the output found by counting. */
typedef struct {
    oracle_conv a;
    int oh, ow, oc;
    adj_shape x, w, y;
    adj_conv attrs; /* attributes for the library */
} oracle_sizes;
oracle_sizes oracle_sizes_of(oracle_conv a);

/* y from x and w; dx from dy and w; dw from x and dy (the requested one may be NULL as operand).
 * The caller frees. */
double *oracle_convolve(const oracle_sizes *s, enum oracle_result wanted, const double *x,
                        const double *w, const double *dy);

/* a [m, k] times b [k, n], each as it is stored transposed if ta or tb; the caller frees. */
static inline double *oracle_matmul(int64_t m, int64_t k, int64_t n, const double *a, int ta,
                                    const double *b, int tb)
{
    double *y = calloc((size_t)(m * n) + 1, sizeof *y);
    for (int64_t i = 0; i < m * n; i++)
        for (int64_t l = 0; l < k; l++)
            y[i] += a[ta ? l * m + i / n : i / n * k + l] * b[tb ? i % n * k + l : l * n + i % n];
    return y;
}

/* ---- Philox4x32-10 once more, for tests of dropout: with 64-bit halves instead of words ---- */

/* Word 0 to 3 of the block that counter {block, step, 0} and the key give. */
static inline uint32_t philox_word(uint64_t block, uint32_t step, uint64_t key, int word)
{
    uint64_t low = block, high = step;
    for (int round = 0; round < 10; round++) {
        uint64_t a = (low & 0xffffffff) * 3528531795u, b = (high & 0xffffffff) * 3449720151u;
        uint64_t next_low = (b << 32) | ((b >> 32) ^ (low >> 32) ^ (key & 0xffffffff));
        high = (a << 32) | ((a >> 32) ^ (high >> 32) ^ (key >> 32));
        low = next_low;
        key = (((key >> 32) + 3144134277u) << 32) | (uint32_t)(key + 2654435769u);
    }
    return (uint32_t)((word < 2 ? low : high) >> (word % 2 * 32));
}

/* Element i of dropout of x, at this step: kept if its word is at least the rate. */
static inline double dropped_out(double x, const adj_dropout_attrs *a, int32_t step, int64_t i)
{
    const int64_t at = a->first + i;
    const double word = philox_word((uint64_t)at / 4, (uint32_t)step, a->seed, at % 4);
    return word >= a->rate * 0x1p32 ? x * (double)(float)(1 / (1 - a->rate)) : 0;
}

/* ---- numbers rounded to a float type by arithmetic ---- */

/* The nearest number with `bits` bits of mantissa and no exponent below `min`, ties to even;
 * infinite from 2^top on. In long double, so that nothing is rounded before. */
static inline double round_to(double v, int bits, int min, int top)
{
    int exponent;
    if (v == 0 || !isfinite(v))
        return v;
    frexp(v, &exponent);
    int unit = exponent - bits > min - bits + 1 ? exponent - bits : min - bits + 1;
    double rounded = (double)(rintl(ldexpl((long double)v, -unit)) * ldexpl(1, unit));
    return fabs(rounded) >= ldexp(1, top) ? copysign(INFINITY, v) : rounded;
}

/* Returns v as a float type stores it. */
static inline double round_to_type(adj_dtype dtype, double v)
{
    switch (dtype) {
    case ADJ_F32: return round_to(v, 24, -126, 128);
    case ADJ_F16: return round_to(v, 11, -14, 16);
    case ADJ_BF16: return round_to(v, 8, -126, 128);
    default: return v;
    }
}

#endif
