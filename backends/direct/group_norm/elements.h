/* elements.h - the element type of rows.c and image.c, which are compiled once per instruction set,
 * for f32 and, with -DGROUP_NORM_BF16, for bf16; TYPED(f) names f for both. */
#ifndef DIRECT_GROUP_NORM_ELEMENTS_H
#define DIRECT_GROUP_NORM_ELEMENTS_H

#include "backends/direct/half.h"
#include "backends/direct/isa.h"
#include "group_norm.h"

#ifdef GROUP_NORM_BF16
typedef uint16_t T;
#define TYPED(f) DIRECT(f##_bf16)

static inline float ld(T v) { return widen_bf16(v); }
static inline T st(float v) { return round_bf16(v); }
#else
typedef float T;
#define TYPED(f) DIRECT(f##_f32)

static inline float ld(T v) { return v; }
static inline T st(float v) { return v; }
#endif

/* Adds n floats that were summed for a while to totals, and clears them. */
static inline void flush(ptrdiff_t n, float *sum, double *total)
{
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++) {
        total[i] += (double)sum[i];
        sum[i] = 0;
    }
}

static inline void *scratch_at(const adj_call *c, size_t offset)
{
    return (char *)c->scratch + offset;
}

#endif
