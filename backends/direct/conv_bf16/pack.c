/* pack.c - packs a tile of the filter: row i has the elements 2i and 2i + 1 of 16 outputs in
 * pairs. Compiled for AVX-512 only. */
#include "tiles.h"

#if HAS_TILES

#include "backends/direct/arith.h"
#include "backends/direct/transpose.h"

enum { LANES = CONV_BF16_LANES, ROW = CONV_BF16_STEP, ELEMENTS = ROW / 2 };

/* Finds the tap and input of element e of the segment; returns 0 if it is beyond the segment's
 * end. */
static int find(const conv_bf16_pass *p, const conv_bf16_tile *t, ptrdiff_t e, ptrdiff_t *tap,
                ptrdiff_t *input)
{
    const ptrdiff_t j = e / t->channels;
    *tap = t->row * t->kw + p->w.filter + j * p->w.forward;
    *input = e % t->channels;
    return j < p->w.taps;
}

static __m512i outputs_of(const conv_bf16_tile *t, ptrdiff_t tap, ptrdiff_t input)
{
    const __mmask16 some = (__mmask16)((1U << min(t->outputs - t->output, LANES)) - 1);
    const char *src = t->filter + ((tap * t->inputs + input) * t->outputs + t->output) * 2;
    return input < t->inputs ? _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, src))
                             : _mm512_setzero_si512();
}

static void gather_pairs(const conv_bf16_pass *p, const conv_bf16_tile *t, __m512i row[LANES])
{
    for (ptrdiff_t i = 0; i < LANES; i++) {
        ptrdiff_t tap, input;
        row[i] = _mm512_setzero_si512();
        if (find(p, t, t->first + 2 * i, &tap, &input))
            row[i] = _mm512_or_si512(outputs_of(t, tap, input),
                                     _mm512_slli_epi32(outputs_of(t, tap, input + 1), 16));
    }
}

/* Returns 32 elements of an output, which are contiguous in the filter within one tap. */
static __m512i elements_of(const conv_bf16_pass *p, const conv_bf16_tile *t, ptrdiff_t output)
{
    __m512i all = _mm512_setzero_si512();
    ptrdiff_t tap, input, n;
    for (ptrdiff_t i = 0; i < ELEMENTS; i += n) {
        if (!find(p, t, t->first + i, &tap, &input))
            break;
        n = min(t->channels - input, ELEMENTS - i);
        const ptrdiff_t there = min(t->inputs - input, n);
        const __mmask32 some = (__mmask32)(((UINT64_C(1) << there) - 1) << i);
        const char *src = t->filter + ((tap * t->outputs + output) * t->inputs + input - i) * 2;
        all = _mm512_or_si512(all, _mm512_maskz_loadu_epi16(some, src));
    }
    return all;
}

static void gather_transposed(const conv_bf16_pass *p, const conv_bf16_tile *t, __m512i row[LANES])
{
    for (ptrdiff_t i = 0; i < LANES; i++)
        row[i] =
            t->output + i < t->outputs ? elements_of(p, t, t->output + i) : _mm512_setzero_si512();
    transpose_words(row);
}

int conv_bf16_pack(const conv_bf16_pass *p, const conv_bf16_tile *t, char *tile)
{
    __m512i row[LANES], largest = _mm512_setzero_si512();
    if (t->is_turned)
        gather_transposed(p, t, row);
    else
        gather_pairs(p, t, row);
    for (ptrdiff_t i = 0; i < LANES; i++) {
        _mm512_store_si512(tile + i * ROW, row[i]);
        largest = _mm512_max_epu16(largest, _mm512_and_si512(row[i], _mm512_set1_epi16(0x7fff)));
    }
    /* the exponent of Inf and NaN is all ones */
    return _mm512_cmpge_epu16_mask(largest, _mm512_set1_epi16(0x7f80)) == 0;
}

#endif
