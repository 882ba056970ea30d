/* padded_rows.h - rows of an image for reading windows: in place, or copies with zeros around
 * where windows reach padding. */
#ifndef DIRECT_PADDED_ROWS_H
#define DIRECT_PADDED_ROWS_H

#include "row_ring.h"

typedef struct {
    ptrdiff_t height, line; /* image: rows; elements of a row */
    ptrdiff_t left, row;    /* copies: zeros before a row; elements; 0 if none are copied */
    ptrdiff_t pixel, panel; /* elements of a pixel, and how many of them are copied; 0 for all */
} padded_rows;

static inline void copy_reals(ptrdiff_t n, real *restrict dst, const real *restrict src)
{
    ptrdiff_t i = 0;
    for (; i + VECTOR <= n; i += VECTOR)
        *(vector *)(dst + i) = *(const vector *)(src + i);
    for (; i < n; i++)
        dst[i] = src[i];
}

/* Copies the first elements of each pixel. */
static inline void copy_panels(const padded_rows *p, ptrdiff_t pixels, real *restrict dst,
                               const real *restrict src)
{
    for (ptrdiff_t x = 0; x < pixels; x++, dst += p->panel, src += p->pixel)
        copy_reals(p->panel, dst, src);
}

static inline void copy_padded(const padded_rows *p, real *restrict dst, const real *restrict src)
{
    const ptrdiff_t line = p->panel > 0 ? p->line / p->pixel * p->panel : p->line;
    const ptrdiff_t n = min(line, p->row - p->left);
    memset(dst, 0, (size_t)p->left * sizeof *dst);
    dst += p->left;
    if (p->panel > 0)
        copy_panels(p, n / p->panel, dst, src);
    else
        copy_reals(n, dst, src);
    memset(dst + n, 0, (size_t)(p->row - p->left - n) * sizeof *dst);
}

/* Sets row[i] to row first + i of the image, `left` before its first element, for existing rows
 * below `end`. The ring caches copies. */
static inline void find_padded_rows(const padded_rows *p, const row_ring *ring, const real *image,
                                    ptrdiff_t first, ptrdiff_t end, const real **row)
{
    for (ptrdiff_t i = max(first, 0); i < min(end, p->height); i++) {
        const real *src = image + i * p->line;
        if (p->row > 0) {
            int is_cached;
            real *copy = row_ring_slot(ring, i % ring->slots, i, &is_cached);
            if (!is_cached)
                copy_padded(p, copy, src);
            src = copy;
        }
        row[i - first] = src;
    }
}

#endif
