/* pack.h - declarations shared by the files compiled for AVX-512. */
#ifndef DIRECT_FILTER_BF16_PACK_H
#define DIRECT_FILTER_BF16_PACK_H

#include "filter_bf16.h"

#if defined(__x86_64__) && defined(ISA_avx512)
#define HAS_BF16_PRODUCTS 1
#include <immintrin.h>

/* filter_bf16_code.pack_pairs and .pack_outputs, transposed and in pairs */
int filter_bf16_pack_pairs(const filter_bf16_pixels *p, ptrdiff_t count, char *pairs);
int filter_bf16_pack_outputs(const filter_bf16_pixels *p, ptrdiff_t count, char *tiles);
int filter_bf16_pack_dense(const filter_bf16_pixels *p, ptrdiff_t count, char *tiles);
/* .add_up */
void filter_bf16_add_up(const char *sums, ptrdiff_t pitch, ptrdiff_t n, float *tile);
#else
#define HAS_BF16_PRODUCTS 0
#endif

#endif
