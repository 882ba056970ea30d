/* rows.c - see rows.h. */
#include <stdint.h>
#include <string.h>

#include "rows.h"

/* ---- elements ---- */

static real element(const im2col *d, const void *w, ptrdiff_t i)
{
    const uint16_t *h = w;
    const real *x = w;
    return d->dtype == ADJ_BF16 ? (real)widen_bf16(h[i]) : x[i];
}

void TYPED(im2col_panels)(const im2col *d, real *dst, const void *w)
{
    ptrdiff_t outputs = d->g.oc, vectors = d->pitch / VECTOR, width;
    for (ptrdiff_t j = 0; j < vectors; j += width, dst += width * VECTOR * outputs) {
        width = panel_width(vectors - j);
        for (ptrdiff_t lane = 0; lane < width * VECTOR; lane++) {
            ptrdiff_t tap = j * VECTOR + lane;
            for (ptrdiff_t o = 0; o < outputs; o++)
                dst[o * width * VECTOR + lane] =
                    tap < d->taps ? element(d, w, tap * outputs + o) : 0;
        }
    }
}

void TYPED(im2col_multiply)(micro_gemm p, ptrdiff_t vectors)
{
    const int is_in_panels = p.b_pitch == 0;
    for (; vectors > 0; vectors -= p.vectors) {
        p.vectors = panel_width(vectors);
        if (is_in_panels)
            p.b_pitch = p.vectors * VECTOR;
        REAL_TYPED(micro_gemm)(&p);
        p.b += p.vectors * VECTOR * (is_in_panels ? p.depth : 1);
        p.c += p.vectors * VECTOR;
        p.prefetch = NULL;
    }
}

/* ---- windows of x ---- */

/* Row ih of image n, which the ring has after this. */
static const real *row_of(const im2col_window *s, ptrdiff_t n, ptrdiff_t ih)
{
    const im2col *d = s->d;
    const adj_conv_geom *g = &d->g;
    ptrdiff_t row = n * g->ih + ih, size = g->iw * g->ic, last = d->slots - 1;
    if (ih < 0 || ih >= g->ih)
        return s->ring.rows + last * d->row;
    int is_cached;
    real *slot = row_ring_slot(&s->ring, ih % last, row, &is_cached);
    if (!is_cached)
        load_reals(d->dtype, size, slot + g->pl * g->ic, s->x + tensor_bytes(d->dtype, row * size));
    return slot;
}

/* Whole vectors are copied: what is too much is overwritten by the next kernel row, or pixel. */
ALWAYS void im2col_pixels(const im2col *d, const int vectors, const real *const row[],
                          ptrdiff_t first, ptrdiff_t end, real *dst, const char *prefetch)
{
    const ptrdiff_t step = d->g.sw * d->g.ic, span = d->span, kh = d->g.kh;
    const ptrdiff_t bytes = prefetch != NULL ? tensor_bytes(d->dtype, d->g.oc) : 0;
    for (ptrdiff_t ow = first; ow < end; ow++, dst += d->pitch) {
        for (ptrdiff_t i = 0; i < bytes; i += 64)
            __builtin_prefetch(prefetch + (ow - first) * bytes + i);
        for (ptrdiff_t i = 0; i < kh; i++)
            for (ptrdiff_t j = 0; j < vectors; j++)
                *(vector *)(dst + i * span + j * VECTOR) =
                    *(const vector *)(row[i] + ow * step + j * VECTOR);
    }
}

void TYPED(im2col_gather)(const im2col_window *s, ptrdiff_t first, ptrdiff_t n, real *dst,
                          const char *prefetch)
{
    const im2col *d = s->d;
    const adj_conv_geom *g = &d->g;
    const real *row[IM2COL_K];
    for (ptrdiff_t at = first, end; at < first + n; at = end) {
        ptrdiff_t image = at / (g->oh * g->ow), oh = at / g->ow % g->oh, ow = at % g->ow;
        ptrdiff_t last = ow + first + n - at < g->ow ? ow + first + n - at : g->ow;
        for (ptrdiff_t kh = 0; kh < g->kh; kh++)
            row[kh] = row_of(s, image, oh * g->sh + kh - g->pt);
        ptrdiff_t vectors = (d->span + VECTOR - 1) / VECTOR;
        if (vectors == 1)
            im2col_pixels(d, 1, row, ow, last, dst, prefetch);
        else if (vectors == 2)
            im2col_pixels(d, 2, row, ow, last, dst, prefetch);
        else
            im2col_pixels(d, (int)vectors, row, ow, last, dst, prefetch);
        end = at + last - ow;
        dst += (last - ow) * d->pitch;
        if (prefetch != NULL)
            prefetch += tensor_bytes(d->dtype, (last - ow) * g->oc);
    }
}

/* ---- spans to planes ---- */

typedef struct {
    char byte[VECTOR_BYTES];
} mask_bytes;

/* All ones in the first n lanes. */
static mask_bytes mask_of(ptrdiff_t n)
{
    mask_bytes m;
    memset(&m, 0, sizeof m);
    memset(&m, 0xff, (size_t)n * sizeof(real));
    return m;
}

typedef int64_t bits __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));

/* The lanes behind a span are zeroed: they are other kernel rows'. */
ALWAYS void col2im_spans(const im2col *d, const im2col_sum *s, const int rows, const int vectors)
{
    const ptrdiff_t step = d->g.sw * d->g.ic, pitch = d->pitch, pixels = s->pixels;
    const mask_bytes m = mask_of(d->span - (ptrdiff_t)(vectors - 1) * VECTOR);
    bits mask;
    memcpy(&mask, &m, sizeof mask);
    for (ptrdiff_t plane = 0; plane < d->planes; plane++) {
        real *dst = s->planes + plane * (d->plane + step);
        for (ptrdiff_t i = plane; i < pixels; i += d->planes, dst += d->planes * step)
            for (ptrdiff_t j = 0; j < vectors; j++) {
                ptrdiff_t at = i * pitch + j * VECTOR;
                vector sum = *(const vector *)(s->src[0] + at);
                for (ptrdiff_t k = 1; k < rows; k++)
                    sum += *(const vector *)(s->src[k] + at);
                if (j == vectors - 1)
                    sum = (vector)((bits)sum & mask);
                *(vector *)(dst + j * VECTOR) = sum;
            }
    }
}

ALWAYS void col2im_rows(const im2col *d, const im2col_sum *s, const int vectors)
{
    switch (s->rows) {
    case 1: col2im_spans(d, s, 1, vectors); break;
    case 2: col2im_spans(d, s, 2, vectors); break;
    case 3: col2im_spans(d, s, 3, vectors); break;
    case 4: col2im_spans(d, s, 4, vectors); break;
    default: col2im_spans(d, s, s->rows, vectors); break;
    }
}

void TYPED(col2im)(const im2col *d, const im2col_sum *s)
{
    int vectors = (int)((d->span + VECTOR - 1) / VECTOR);
    if (vectors == 1)
        col2im_rows(d, s, 1);
    else if (vectors == 2)
        col2im_rows(d, s, 2);
    else
        col2im_rows(d, s, vectors);
}
