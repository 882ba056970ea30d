/* pack.c - packs a tile of the filter: row i has the elements 2i and 2i + 1 of 16 outputs in
 * pairs. Compiled for AVX-512 only. */
#include "tiles.h"

#if HAS_TILES

#include "backends/direct/transpose.h"

enum { LANES = CONV_BF16_LANES, ROW = CONV_BF16_STEP, ELEMENTS = ROW / 2 };

/* A tile: elements from `first` on of the segment for row `row` of the filter, 16 outputs from
 * `output` on. */
typedef struct {
    const conv_bf16 *p;
    const conv_bf16_pass *a;
    const char *filter;
    ptrdiff_t row, first, output;
} tile;

/* Finds the tap and input of element e of the segment; returns 0 if it is beyond the segment's
 * end. */
static int find(const tile *t, ptrdiff_t e, ptrdiff_t *tap, ptrdiff_t *input)
{
    const ptrdiff_t j = e / t->p->channels;
    *tap = t->row * t->p->kw + t->a->w.filter + j * t->a->w.forward;
    *input = e % t->p->channels;
    return j < t->a->w.taps;
}

static __m512i outputs_of(const tile *t, ptrdiff_t tap, ptrdiff_t input)
{
    const __mmask16 some = (__mmask16)((1U << min(t->p->dst.c - t->output, LANES)) - 1);
    const char *src = t->filter + ((tap * t->p->src.c + input) * t->p->dst.c + t->output) * 2;
    return input < t->p->src.c ? _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, src))
                               : _mm512_setzero_si512();
}

static void gather_pairs(const tile *t, __m512i row[LANES])
{
    for (ptrdiff_t i = 0; i < LANES; i++) {
        ptrdiff_t tap, input;
        row[i] = _mm512_setzero_si512();
        if (find(t, t->first + 2 * i, &tap, &input))
            row[i] = _mm512_or_si512(outputs_of(t, tap, input),
                                     _mm512_slli_epi32(outputs_of(t, tap, input + 1), 16));
    }
}

/* Returns 32 elements of an output, which are contiguous in the filter within one tap. */
static __m512i elements_of(const tile *t, ptrdiff_t output)
{
    __m512i all = _mm512_setzero_si512();
    ptrdiff_t tap, input, n;
    for (ptrdiff_t i = 0; i < ELEMENTS; i += n) {
        if (!find(t, t->first + i, &tap, &input))
            break;
        n = min(t->p->channels - input, ELEMENTS - i);
        const ptrdiff_t there = min(t->p->src.c - input, n);
        const __mmask32 some = (__mmask32)(((UINT64_C(1) << there) - 1) << i);
        const char *src = t->filter + ((tap * t->p->dst.c + output) * t->p->src.c + input - i) * 2;
        all = _mm512_or_si512(all, _mm512_maskz_loadu_epi16(some, src));
    }
    return all;
}

static void gather_transposed(const tile *t, __m512i row[LANES])
{
    for (ptrdiff_t i = 0; i < LANES; i++)
        row[i] =
            t->output + i < t->p->dst.c ? elements_of(t, t->output + i) : _mm512_setzero_si512();
    transpose_words(row);
}

int conv_bf16_pack(const conv_bf16 *p, const adj_call *call, const conv_bf16_pass *a, ptrdiff_t i)
{
    const ptrdiff_t step = i % a->steps, block = i / a->steps % p->blocks;
    const ptrdiff_t of_segment = a->steps / a->h.taps, part = i / a->steps / p->blocks;
    const char *parts = direct_scratch(call, p->split);
    const ptrdiff_t bytes = p->kh * p->kw * p->src.c * p->dst.c * 2;
    const tile t = {.p = p,
                    .a = a,
                    .filter = p->parts > 1 ? parts + part * bytes : call->in[p->filter_in],
                    .row = a->h.filter + step / of_segment * a->h.forward,
                    .first = step % of_segment * ELEMENTS,
                    .output = block * LANES};
    char *packed = (char *)direct_scratch(call, a->filter) + i * CONV_BF16_TILE;
    __m512i row[LANES], largest = _mm512_setzero_si512();
    if (p->is_turned)
        gather_transposed(&t, row);
    else
        gather_pairs(&t, row);
    for (ptrdiff_t k = 0; k < LANES; k++) {
        _mm512_store_si512(packed + k * ROW, row[k]);
        largest = _mm512_max_epu16(largest, _mm512_and_si512(row[k], _mm512_set1_epi16(0x7fff)));
    }
    /* the exponent of Inf and NaN is all ones */
    return _mm512_cmpge_epu16_mask(largest, _mm512_set1_epi16(0x7f80)) == 0;
}

#endif
