/* elem.h - the element type that a naive kernel is compiled for: ELEM_f32, ELEM_f64, ELEM_f16 or
 * ELEM_bf16.
 *
 * Kernels use T (storage), A (arithmetic), ld() and st(); they never name a dtype. f32 computes
 * in double, so that naive is accurate enough as the reference; f16 and bf16 compute in float
 * and round once, to nearest even, in st(). T is a struct for the half types, so that confusing
 * T and A does not compile. S is the type of statistics over many elements: float for the half
 * types. KERNEL(op) names the function compiled for this type. */
#ifndef NAIVE_ELEM_H
#define NAIVE_ELEM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(ELEM_f32)
#define KERNEL(op) naive_##op##_f32
#define ELEM_DTYPE ADJ_F32
typedef float T;
typedef double A;
typedef float S;
static inline A ld(const T *p) { return (A)*p; }
static inline void st(T *p, A v) { *p = (T)v; }

#elif defined(ELEM_f64)
#define KERNEL(op) naive_##op##_f64
#define ELEM_DTYPE ADJ_F64
typedef double T;
typedef double A;
typedef double S;
static inline A ld(const T *p) { return *p; }
static inline void st(T *p, A v) { *p = v; }

#elif defined(ELEM_bf16)
#define KERNEL(op) naive_##op##_bf16
#define ELEM_DTYPE ADJ_BF16
typedef struct {
    uint16_t bits;
} T;
typedef float A;
typedef float S;

static inline A ld(const T *p)
{
    uint32_t u = (uint32_t)p->bits << 16;
    A v;
    memcpy(&v, &u, sizeof v);
    return v;
}

static inline void st(T *p, A v)
{
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    uint32_t rounded = u + 0x7fffu + ((u >> 16) & 1u);
    p->bits = (uint16_t)(v != v ? (u >> 16) | 0x40u : rounded >> 16); /* NaN stays NaN */
}

#elif defined(ELEM_f16)
#define KERNEL(op) naive_##op##_f16
#define ELEM_DTYPE ADJ_F16
typedef struct {
    uint16_t bits;
} T;
typedef float A;
typedef float S;

static inline A ld(const T *p)
{
    /* Without a branch, so that loops are vectorized. The exponent of Inf and NaN stays all
     * ones. */
    uint32_t h = p->bits, sign = (h & 0x8000u) << 16, rest = h & 0x7fffu;
    uint32_t normal = (rest << 13) + 0x38000000u + 0x38000000u * (rest >= 0x7c00u);
    uint32_t is_small = 0u - (rest < 0x0400u), u;
    A subnormal = (A)(int32_t)rest * 0x1p-24f, v; /* also zero; exact */
    memcpy(&u, &subnormal, sizeof u);
    u = sign | (u & is_small) | (normal & ~is_small);
    memcpy(&v, &u, sizeof v);
    return v;
}

static inline void st(T *p, A v)
{
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    uint32_t sign = (u >> 16) & 0x8000u, rest = u & 0x7fffffffu, h;
    if (rest > 0x7f800000u)
        h = 0x7e00u;
    else if (rest >= 0x477ff000u) /* 65520 and more round to infinity */
        h = 0x7c00u;
    else if (rest >= 0x38800000u) /* normal: round off 13 bits, to even */
        h = (rest - 0x38000000u + 0x0fffu + ((rest >> 13) & 1u)) >> 13;
    else { /* subnormal: adding 0.5 leaves the rounded multiple of 2^-24 in the low bits */
        A magnitude;
        memcpy(&magnitude, &rest, sizeof magnitude);
        magnitude += 0.5f;
        memcpy(&h, &magnitude, sizeof h);
        h -= 0x3f000000u;
    }
    p->bits = (uint16_t)(sign | h);
}

#else
#error "compile with -DELEM_f32, -DELEM_f64, -DELEM_f16 or -DELEM_bf16"
#endif
#endif
