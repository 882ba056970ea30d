/* copy.c - copies the rows of src that a band reads, with zeros as padding: see conv_bf16.h.
 * Compiled for AVX-512 only. */
#include "tiles.h"

#if HAS_TILES

#include "backends/direct/split.h"

enum {
    VECTOR = 64,
    LANES = CONV_BF16_LANES,
    AHEAD = 4 << 10 /* bytes; hardware prefetching stops at page boundaries */
};

typedef struct {
    const conv_bf16 *p;
    const conv_bf16_pass *pass;
    int have_parts;
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
    __mmask16 no_parts = 0;
    for (ptrdiff_t i = 0; i < n; i += LANES) {
        const __mmask16 some = n - i < LANES ? (__mmask16)first_elements(n - i) : 0xffff;
        const __m512 v = _mm512_maskz_loadu_ps(some, src + i * 4);
        const split_parts parts = split_16(v);
        _mm_prefetch(src + i * 4 + AHEAD, _MM_HINT_T0);
        no_parts |= without_parts(v);
        _mm256_mask_storeu_epi16(first + i * 2, some, parts.first);
        _mm256_mask_storeu_epi16(second + i * 2, some, parts.second);
    }
    return no_parts == 0;
}

/* Copies n elements. */
static inline void copy(copier *c, char *dst, const char *src, ptrdiff_t n)
{
    if (c->p->part == 0)
        copy_words(dst, src, n);
    else
        c->have_parts &= conv_bf16_split(src, n, dst, dst + c->p->part);
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
    if (c->p->part != 0)
        clear_words(dst + c->p->part, bytes);
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

int conv_bf16_copy_rows(const conv_bf16_work *s, const conv_bf16_pass *a, const conv_bf16_band *b,
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
    return c.have_parts;
}

#endif
