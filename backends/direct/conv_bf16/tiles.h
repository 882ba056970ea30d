/* tiles.h - declarations shared by the files compiled for AVX-512: run.c calls the others. */
#ifndef DIRECT_CONV_BF16_TILES_H
#define DIRECT_CONV_BF16_TILES_H

#include "backends/direct/arith.h"
#include "conv_bf16.h"

#if defined(__x86_64__) && defined(ISA_avx512)
#define HAS_TILES 1
#include <immintrin.h>

/* A band: its image, its first row in the pass, and its group of outputs. */
typedef struct {
    ptrdiff_t image, row, output, outputs;
} conv_bf16_band;

typedef struct { /* state of a thread */
    const conv_bf16 *p;
    const adj_call *call;
    char *own;     /* the thread's scratch */
    int is_finite; /* the filter is; for f32: can be split */
} conv_bf16_work;

/* Positions of a pass in a band, computed from its scratch. */
typedef struct {
    const conv_bf16_pass *pass;
    ptrdiff_t first, end; /* tiles */
    ptrdiff_t positions, blocks, outputs;
    ptrdiff_t element;               /* bytes of an element of dst and bias */
    const char *src;                 /* the scratch */
    const char *filter;              /* tiles */
    ptrdiff_t src_part, filter_part; /* f32: bytes to the second parts; else 0 */
    const int32_t *tile_at, *dst_at; /* bytes: where tiles begin in src, positions in dst */
    const char *bias;                /* by output; NULL if none */
    char *dst;
} conv_bf16_product;

/* copy.c: copies rows `begin` to `end` of the band's src; returns whether all f32 numbers can be
 * split. */
int conv_bf16_copy_rows(const conv_bf16_work *s, const conv_bf16_pass *a, const conv_bf16_band *b,
                        ptrdiff_t begin, ptrdiff_t end);
/* Splits n f32 elements into parts; returns whether all can be split. */
int conv_bf16_split(const char *src, ptrdiff_t n, char *first, char *second);
/* pack.c: packs tile i of the pass's filter; the tiles of both parts are counted. Returns whether
 * all elements are finite. */
int conv_bf16_pack(const conv_bf16 *p, const adj_call *call, const conv_bf16_pass *a, ptrdiff_t i);
/* product.c: each thread calls begin before a pass's products and end after all. */
void conv_bf16_begin(const conv_bf16_pass *p);
void conv_bf16_end(void);
void conv_bf16_multiply(const conv_bf16_product *p);
#else
#define HAS_TILES 0
#endif

#endif
