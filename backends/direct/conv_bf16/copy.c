/* copy.c - the rows of src that a band reads, with zeros as padding: see conv_bf16.h. Compiled for
 * AVX-512 alone. */
#include "tiles.h"

#if HAS_TILES

#include "backends/direct/arith.h"

enum { VECTOR = 64, AHEAD = 4 << 10 /* bytes: the processor's own prefetching stops at pages */ };

/* So many elements of two bytes, below 32. */
static inline __mmask32 first_elements(ptrdiff_t n) { return (1U << n) - 1; }

/* bytes: an even number. */
static inline void copy(char *dst, const char *src, ptrdiff_t bytes)
{
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

static inline void clear(char *dst, ptrdiff_t bytes)
{
    ptrdiff_t i = 0;
    for (; i + VECTOR <= bytes; i += VECTOR)
        _mm512_storeu_si512(dst + i, _mm512_setzero_si512());
    if (i < bytes)
        _mm512_mask_storeu_epi16(dst + i, first_elements((bytes - i) / 2), _mm512_setzero_si512());
}

/* Pixels; an odd number of channels gets a zero behind it. */
static inline void copy_pixels(const conv_bf16_rows *s, char *dst, const char *src, ptrdiff_t n)
{
    const ptrdiff_t from = s->channels * 2, to = s->scratch * 2;
    if (from == to) {
        copy(dst, src, n * from);
        return;
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        copy(dst + i * to, src + i * from, from);
        *(uint16_t *)(void *)(dst + i * to + from) = 0;
    }
}

static void copy_row(const conv_bf16_rows *s, char *dst, const char *src)
{
    const conv_bf16_axis *w = &s->pass->w;
    const ptrdiff_t pixel = s->scratch * 2, columns = s->pass->pitch / pixel;
    const ptrdiff_t before = min(max(w->pad, 0), columns), first = max(-w->pad, 0);
    const ptrdiff_t n = max(min(columns - before, w->src - first), 0);
    clear(dst, before * pixel);
    copy_pixels(s, dst + before * pixel, src + first * s->channels * 2, n);
    clear(dst + (before + n) * pixel, (columns - before - n) * pixel);
}

/* The window of a column of dst. */
static inline void copy_window(const conv_bf16_rows *s, char *dst, const char *src, ptrdiff_t first)
{
    const conv_bf16_axis *w = &s->pass->w;
    const ptrdiff_t pixel = s->scratch * 2, from = s->channels * 2;
    if (w->dilation == 1 && first >= 0 && first + w->taps <= w->src) {
        copy_pixels(s, dst, src + first * from, w->taps);
        return;
    }
    for (ptrdiff_t j = 0; j < w->taps; j++, first += w->dilation)
        if (first >= 0 && first < w->src)
            copy_pixels(s, dst + j * pixel, src + first * from, 1);
        else
            clear(dst + j * pixel, pixel);
}

void conv_bf16_copy_rows(const conv_bf16_rows *s)
{
    const conv_bf16_pass *p = s->pass;
    const ptrdiff_t pitch = p->w.src * s->channels * 2;
    for (ptrdiff_t i = s->from; i < s->end; i++) {
        const ptrdiff_t row = s->first + i;
        char *dst = s->dst + conv_bf16_slot(p, i) * p->pitch;
        const char *src = s->src + row * pitch;
        if (row < 0 || row >= p->h.src)
            clear(dst, p->pitch);
        else if (!p->is_unrolled)
            copy_row(s, dst, src);
        else
            for (ptrdiff_t k = 0; k < p->w.dst; k++)
                copy_window(s, dst + k * p->position, src, k * p->w.stride - p->w.pad);
    }
}

#endif
