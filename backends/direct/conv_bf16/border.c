/* border.c - recomputes positions whose windows reach padding if the filter is not finite: Inf
 * times the padding's zeros is NaN, a product that the definition does not have. Compiled for
 * AVX-512 only. */
#include "tiles.h"

#if HAS_TILES

#include "backends/direct/half.h"

enum { LANES = CONV_BF16_LANES, TILE = CONV_BF16_TILE, ROW = CONV_BF16_STEP, PAIR = 4 };

static __m512 add_pair(__m512 sum, const char *x, const char *filter)
{
    const __m512i w = _mm512_load_si512(filter);
    const uint16_t *pair = (const uint16_t *)(const void *)x;
    const __m512 low = _mm512_castsi512_ps(_mm512_slli_epi32(w, 16));
    const __m512 high =
        _mm512_castsi512_ps(_mm512_and_si512(w, _mm512_set1_epi32((int)0xffff0000)));
    sum = _mm512_fmadd_ps(_mm512_set1_ps(widen_bf16(pair[0])), low, sum);
    return _mm512_fmadd_ps(_mm512_set1_ps(widen_bf16(pair[1])), high, sum);
}

/* Sums one position. src: its elements; filter: the tiles of one block. */
static __m512 sum_of(const conv_bf16_pass *p, const char *src, const char *filter,
                     ptrdiff_t channels, conv_range h, conv_range w)
{
    const ptrdiff_t of_segment = p->whole + (p->rest > 0);
    __m512 sum = _mm512_setzero_ps();
    for (ptrdiff_t i = h.first; i < h.end; i++)
        for (ptrdiff_t e = w.first * channels * 2; e < w.end * channels * 2; e += PAIR)
            sum = add_pair(sum, src + p->segment_at[i] + e,
                           filter + (i * of_segment + e / ROW) * TILE + e % ROW / PAIR * ROW);
    return sum;
}

static void mend_position(const conv_bf16_product *p, ptrdiff_t k, ptrdiff_t channels, conv_range h,
                          conv_range w)
{
    const char *src = p->src + p->tile_at[k / LANES] + k % LANES * p->pass->position;
    _Alignas(64) float sum[LANES] = {0};
    for (ptrdiff_t o = 0; o < p->outputs; o++) {
        if (o % LANES == 0)
            _mm512_store_ps(sum, sum_of(p->pass, src, p->filter + o / LANES * p->pass->steps * TILE,
                                        channels, h, w));
        const float bias =
            p->bias != NULL ? widen_bf16(((const uint16_t *)(const void *)p->bias)[o]) : 0;
        ((uint16_t *)(void *)(p->dst + p->dst_at[k]))[o] = round_bf16(sum[o % LANES] + bias);
    }
}

void conv_bf16_mend(const conv_bf16_product *p, ptrdiff_t channels, ptrdiff_t row)
{
    const conv_bf16_pass *a = p->pass;
    const ptrdiff_t line = a->is_unrolled ? a->w.dst : a->line * LANES;
    for (ptrdiff_t k = 0; k < p->positions; k++) {
        if (p->dst_at[k] < 0)
            continue;
        const conv_range h = conv_taps_inside(&a->h, row + k / line);
        const conv_range w = conv_taps_inside(&a->w, k % line);
        if (!conv_is_whole(&a->h, h) || !conv_is_whole(&a->w, w))
            mend_position(p, k, channels, h, w);
    }
}

#endif
