/* element.h - the element type that a file of kernels is compiled for, besides the instruction
 * set: f32, or f64 with -DELEM_f64, or bf16 with -DELEM_bf16.
 *
 * T is the stored type, real the type of arithmetic. TYPED(f) names f compiled for the stored
 * type, REAL_TYPED(f) f compiled for the type of arithmetic. */
#ifndef DIRECT_ELEMENT_H
#define DIRECT_ELEMENT_H

#include "half.h"
#include "isa.h"

#define ALWAYS static inline __attribute__((always_inline))

#if defined(ELEM_f64)
typedef double T, real;
typedef int64_t real_bits;
#define TYPED(f) DIRECT(f##_f64)
#define REAL_TYPED(f) DIRECT(f##_f64)
#elif defined(ELEM_bf16)
typedef uint16_t T;
typedef float real;
typedef int32_t real_bits;
#define TYPED(f) DIRECT(f##_bf16)
#define REAL_TYPED(f) DIRECT(f##_f32)
#else
typedef float T, real;
typedef int32_t real_bits;
#define TYPED(f) DIRECT(f##_f32)
#define REAL_TYPED(f) DIRECT(f##_f32)
#endif

enum { VECTOR = VECTOR_BYTES / sizeof(real), REAL_IS_FLOAT = sizeof(real) == sizeof(float) };

/* A vector of reals, which may be unaligned. */
typedef real vector __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(real)), may_alias));

/* A vector as an argument or a result: GCC 14 for aarch64 crashes on arguments of lesser
 * alignment. Memory is read and written through `vector`, which may be unaligned. */
typedef real vector_value __attribute__((vector_size(VECTOR_BYTES)));

/* One integer per lane of a vector. */
typedef real_bits vector_mask __attribute__((vector_size(VECTOR_BYTES)));

#ifdef ELEM_bf16
static inline real ld(T v) { return widen_bf16(v); }
static inline T st(real v) { return round_bf16(v); }

/* A vector's number of stored elements, and their conversion to reals and back: ld and st. */
typedef T halves __attribute__((vector_size(VECTOR_BYTES / 2), aligned(sizeof(T)), may_alias));
typedef uint32_t words __attribute__((vector_size(VECTOR_BYTES)));

static inline vector_value load_vector(const T *at)
{
    return (vector)(__builtin_convertvector(*(const halves *)at, words) << 16);
}

static inline void store_vector(T *at, vector_value v)
{
    const words bits = (words)v, is_nan = (words)(v != v);
    const words rounded = bits + 0x7fffu + (bits >> 16 & 1u);
    const words chosen = ((bits | 0x400000u) & is_nan) | (rounded & ~is_nan);
    *(halves *)at = __builtin_convertvector(chosen >> 16, halves);
}
#else
static inline real ld(T v) { return v; }
static inline T st(real v) { return v; }
static inline vector_value load_vector(const T *at) { return *(const vector *)at; }
static inline void store_vector(T *at, vector_value v) { *(vector *)at = v; }
#endif

/* Returns max(v, 0). A NaN stays one, as v <= 0 is false for it; a maximum instruction returns 0.
 * Epilogues and row kernels call it. */
static inline vector_value relu_vector(vector_value v)
{
    return (vector)((vector_mask)v & ~(v <= (vector){0}));
}

/* Returns the bytes of n elements of a tensor. */
static inline ptrdiff_t tensor_bytes(adj_dtype dtype, ptrdiff_t n)
{
    return n * (ptrdiff_t)adj_dtype_size(dtype);
}

/* Converts n elements of a tensor to reals, and back. A tensor of no half type holds reals. */
static inline void load_reals(adj_dtype dtype, ptrdiff_t n, real *restrict dst,
                              const void *restrict src)
{
    const uint16_t *h = src;
    if (dtype == ADJ_BF16) {
#pragma omp simd
        for (ptrdiff_t i = 0; i < n; i++)
            dst[i] = (real)widen_bf16(h[i]);
    } else if (dtype == ADJ_F16) {
        const ptrdiff_t first = REAL_IS_FLOAT ? widen_f16_vectors(n, (void *)dst, h) : 0;
#pragma omp simd
        for (ptrdiff_t i = first; i < n; i++)
            dst[i] = (real)widen_f16(h[i]);
    } else
        memcpy(dst, src, (size_t)n * sizeof *dst);
}

static inline void store_reals(adj_dtype dtype, ptrdiff_t n, void *restrict dst,
                               const real *restrict src)
{
    uint16_t *h = dst;
    if (dtype == ADJ_BF16) {
#pragma omp simd
        for (ptrdiff_t i = 0; i < n; i++)
            h[i] = round_bf16((float)src[i]);
    } else if (dtype == ADJ_F16) {
        const ptrdiff_t first = REAL_IS_FLOAT ? round_f16_vectors(n, h, (const void *)src) : 0;
#pragma omp simd
        for (ptrdiff_t i = first; i < n; i++)
            h[i] = round_f16((float)src[i]);
    } else
        memcpy(dst, src, (size_t)n * sizeof *src);
}

/* Rounds n reals to the type and back, in place, so that a value inside a group has the bits
 * that its node gives alone. */
static inline void round_reals(adj_dtype dtype, ptrdiff_t n, real *x)
{
    enum { PIECE = 64 };
    uint16_t half[PIECE];
    for (ptrdiff_t i = 0; i < n && adj_is_half(dtype); i += PIECE) {
        const ptrdiff_t few = n - i < PIECE ? n - i : PIECE;
        store_reals(dtype, few, half, x + i);
        load_reals(dtype, few, x + i, half);
    }
}

/* True if every element is finite: x - x is 0 except for Inf and NaN. */
static inline int are_finite(const real *x, ptrdiff_t n)
{
    int bad = 0;
#pragma omp simd reduction(| : bad)
    for (ptrdiff_t i = 0; i < n; i++)
        bad |= !(x[i] - x[i] == 0);
    return !bad;
}

/* Adds n partial sums to totals and clears them. */
static inline void flush_sums(ptrdiff_t n, real *restrict sum, double *restrict total)
{
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++) {
        total[i] += (double)sum[i];
        sum[i] = 0;
    }
}

#endif
