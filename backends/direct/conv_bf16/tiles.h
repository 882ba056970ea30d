/* tiles.h - declarations shared by the files compiled for AVX-512. */
#ifndef DIRECT_CONV_BF16_TILES_H
#define DIRECT_CONV_BF16_TILES_H

#include "conv_bf16.h"

#if defined(__x86_64__) && defined(ISA_avx512)
#define HAS_TILES 1
#include <immintrin.h>

/* members of conv_bf16_code */
int conv_bf16_copy_rows(const conv_bf16_rows *s);
int conv_bf16_split(const char *src, ptrdiff_t n, char *first, char *second);
int conv_bf16_pack(const conv_bf16_pass *p, const conv_bf16_tile *t, char *tile);
void conv_bf16_mend(const conv_bf16_product *p, ptrdiff_t channels, ptrdiff_t row);
#else
#define HAS_TILES 0
#endif

#endif
