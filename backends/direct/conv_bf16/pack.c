/* pack.c - the operands of conv_bf16.h's products: copies the rows of src that a chunk reads, with
 * zeros as padding, and packs tiles of the filter, whose row i has the elements 2i and 2i + 1 of 16
 * outputs in pairs. Compiled for AVX-512 only. */
#include "backends/direct/arith.h"
#include "conv_bf16.h"

#if HAS_TILES

#include "backends/direct/bf16_vectors.h"

enum {
    VECTOR = 64,
    LANES = CONV_BF16_LANES,
    ROW = CONV_BF16_STEP,
    ELEMENTS = ROW / 2,
    AHEAD = 4 << 10 /* bytes; hardware prefetching stops at page boundaries */
};

/* ---- rows of src ---- */

typedef struct {
    const conv_bf16 *p;
    const conv_bf16_pass *pass;
    int have_terms;
} copier;

/* Returns the mask of the first n two-byte elements, n < 32. */
static inline __mmask32 first_elements(ptrdiff_t n) { return (1U << n) - 1; }

static inline void copy_words(char *dst, const char *src, ptrdiff_t n)
{
    const ptrdiff_t bytes = n * 2;
    ptrdiff_t i = 0;
    for (; i + VECTOR <= bytes; i += VECTOR) {
        _mm_prefetch(src + i + AHEAD, _MM_HINT_T0);
        _mm512_storeu_si512(dst + i, _mm512_loadu_si512(src + i));
    }
    if (i < bytes) {
        const __mmask32 rest = first_elements((bytes - i) / 2);
        _mm512_mask_storeu_epi16(dst + i, rest, _mm512_maskz_loadu_epi16(rest, src + i));
    }
}

__attribute__((target("avx512bf16"))) int conv_bf16_split(const char *src, ptrdiff_t n, char *first,
                                                          char *second)
{
    __mmask16 no_terms = 0;
    for (ptrdiff_t i = 0; i < n; i += LANES) {
        const __mmask16 some = n - i < LANES ? (__mmask16)first_elements(n - i) : 0xffff;
        const __m512 v = _mm512_maskz_loadu_ps(some, src + i * 4);
        const bf16_terms terms = split_16(v);
        _mm_prefetch(src + i * 4 + AHEAD, _MM_HINT_T0);
        no_terms |= without_terms(v);
        _mm256_mask_storeu_epi16(first + i * 2, some, terms.first);
        _mm256_mask_storeu_epi16(second + i * 2, some, terms.second);
    }
    return no_terms == 0;
}

/* Copies n elements. */
static inline void copy(copier *c, char *dst, const char *src, ptrdiff_t n)
{
    if (c->p->term == 0)
        copy_words(dst, src, n);
    else
        c->have_terms &= conv_bf16_split(src, n, dst, dst + c->p->term);
}

static inline void clear_words(char *dst, ptrdiff_t bytes)
{
    ptrdiff_t i = 0;
    for (; i + VECTOR <= bytes; i += VECTOR)
        _mm512_storeu_si512(dst + i, _mm512_setzero_si512());
    if (i < bytes)
        _mm512_mask_storeu_epi16(dst + i, first_elements((bytes - i) / 2), _mm512_setzero_si512());
}

static inline void clear(const copier *c, char *dst, ptrdiff_t bytes)
{
    clear_words(dst, bytes);
    if (c->p->term != 0)
        clear_words(dst + c->p->term, bytes);
}

/* Copies pixels; an odd number of channels is padded by a zero. */
static inline void copy_pixels(copier *c, char *dst, const char *src, ptrdiff_t n)
{
    const ptrdiff_t channels = c->p->src.c, scratch = c->p->channels;
    if (channels == scratch) {
        copy(c, dst, src, n * channels);
        return;
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        copy(c, dst + i * scratch * 2, src + i * channels * c->p->element, channels);
        clear(c, dst + (i * scratch + channels) * 2, 2);
    }
}

static void copy_row(copier *c, char *dst, const char *src)
{
    const conv_bf16 *p = c->p;
    const conv_axis *w = &c->pass->w;
    const ptrdiff_t pixel = p->channels * 2, columns = c->pass->pitch / pixel;
    const ptrdiff_t before = min(max(w->pad, 0), columns), first = max(-w->pad, 0);
    const ptrdiff_t n = max(min(columns - before, w->src - first), 0);
    clear(c, dst, before * pixel);
    copy_pixels(c, dst + before * pixel, src + first * p->src.c * p->element, n);
    clear(c, dst + (before + n) * pixel, (columns - before - n) * pixel);
}

/* Copies the window of a column of dst. */
static inline void copy_window(copier *c, char *dst, const char *src, ptrdiff_t first)
{
    const conv_axis *w = &c->pass->w;
    const ptrdiff_t pixel = c->p->channels * 2, src_pixel = c->p->src.c * c->p->element;
    if (w->dilation == 1 && first >= 0 && first + w->taps <= w->src) {
        copy_pixels(c, dst, src + first * src_pixel, w->taps);
        return;
    }
    for (ptrdiff_t j = 0; j < w->taps; j++, first += w->dilation)
        if (first >= 0 && first < w->src)
            copy_pixels(c, dst + j * pixel, src + first * src_pixel, 1);
        else
            clear(c, dst + j * pixel, pixel);
}

int conv_bf16_copy_rows(const conv_bf16_work *s, const conv_bf16_pass *a, const conv_bf16_chunk *b,
                        ptrdiff_t begin, ptrdiff_t end)
{
    const conv_bf16 *p = s->p;
    const ptrdiff_t pitch = p->src.w * p->src.c * p->element;
    const char *image = (const char *)s->call->in[p->src_in] + b->image * p->src.h * pitch;
    copier c = {p, a, 1};
    for (ptrdiff_t i = begin; i < end; i++) {
        const ptrdiff_t row = b->row * a->h.stride - a->h.pad + i;
        char *dst = s->own + p->image + conv_bf16_slot(a, i) * a->pitch;
        const char *src = image + row * pitch;
        if (row < 0 || row >= a->h.src)
            clear(&c, dst, a->pitch);
        else if (!a->is_unrolled)
            copy_row(&c, dst, src);
        else
            for (ptrdiff_t k = 0; k < a->w.dst; k++)
                copy_window(&c, dst + k * a->position, src, k * a->w.stride - a->w.pad);
    }
    return c.have_terms;
}

/* ---- the filter ---- */

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
    const ptrdiff_t of_segment = a->steps / a->h.taps, term = i / a->steps / p->blocks;
    const char *terms = direct_scratch(call, p->split);
    const ptrdiff_t bytes = p->kh * p->kw * p->src.c * p->dst.c * 2;
    const tile t = {.p = p,
                    .a = a,
                    .filter = p->terms > 1 ? terms + term * bytes : call->in[p->filter_in],
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
