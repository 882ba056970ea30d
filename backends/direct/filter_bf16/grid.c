/* grid.c - maps the entries of a chunk's grid to pixels in memory: see filter_bf16.h. */
#include "backends/direct/arith.h"
#include "filter_bf16.h"

enum { PADDING = -1 };

/* Position t reads input t * stride + phase - pad. */
ptrdiff_t filter_bf16_first(const filter_bf16_axis *a, ptrdiff_t phase)
{
    return a->pad > phase ? divide_up(a->pad - phase, a->stride) : 0;
}

ptrdiff_t filter_bf16_last(const filter_bf16_axis *a, ptrdiff_t phase)
{
    ptrdiff_t end = a->in - phase + a->pad;
    return end > 0 ? min(divide_up(end, a->stride), a->out + a->shift) : 0;
}

static void fill(int32_t *at, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++)
        at[i] = PADDING;
}

static void count_up(int32_t *restrict at, ptrdiff_t n, ptrdiff_t first, ptrdiff_t step)
{
    for (ptrdiff_t i = 0; i < n; i++)
        at[i] = (int32_t)(first + i * step);
}

ptrdiff_t filter_bf16_positions(const filter_bf16 *p, filter_bf16_chunk c)
{
    return ((c.images - 1) * p->h.pitch + c.rows - 1) * p->w.pitch + p->w.out;
}

/* Returns the pixels of a dense row of dy, rounded up to pairs. */
static ptrdiff_t dense_row(const filter_bf16 *p) { return round_up(p->w.out, 2); }

ptrdiff_t filter_bf16_steps(const filter_bf16 *p, filter_bf16_chunk c)
{
    const ptrdiff_t pixels =
        p->is_dense ? c.images * c.rows * dense_row(p) : filter_bf16_positions(p, c);
    return divide_up(pixels, FILTER_BF16_STEP);
}

/* Lists one pixel more than there are entries, since the last entry is a pair too. */
void filter_bf16_list_x(const filter_bf16 *p, filter_bf16_chunk c, filter_bf16_tap phase,
                        int32_t *at)
{
    const filter_bf16_axis *h = &p->h, *w = &p->w;
    const ptrdiff_t pixel = p->ic * p->element;
    const ptrdiff_t left = filter_bf16_first(w, phase.kw), right = filter_bf16_last(w, phase.kw);
    const ptrdiff_t top = max(filter_bf16_first(h, phase.kh) - c.row, 0);
    const ptrdiff_t bottom = min(filter_bf16_last(h, phase.kh) - c.row, c.rows + h->shift);
    fill(at, p->entries + 1);
    for (ptrdiff_t i = 0; i < c.images; i++)
        for (ptrdiff_t r = top; r < bottom; r++) {
            ptrdiff_t ih = (c.row + r) * h->stride + phase.kh - h->pad;
            ptrdiff_t iw = left * w->stride + phase.kw - w->pad;
            count_up(at + (i * h->pitch + r) * w->pitch + left, right - left,
                     ((i * h->in + ih) * w->in + iw) * pixel, w->stride * pixel);
        }
}

void filter_bf16_list_dy(const filter_bf16 *p, filter_bf16_chunk c, int32_t *at)
{
    const filter_bf16_axis *h = &p->h, *w = &p->w;
    const ptrdiff_t pixel = p->oc * p->element;
    const ptrdiff_t pitch = p->is_dense ? dense_row(p) : w->pitch;
    const ptrdiff_t image = p->is_dense ? c.rows : h->pitch;
    fill(at, p->steps * FILTER_BF16_STEP);
    for (ptrdiff_t i = 0; i < c.images; i++)
        for (ptrdiff_t r = 0; r < c.rows; r++)
            count_up(at + (i * image + r) * pitch, w->out,
                     (i * h->out + c.row + r) * w->out * pixel, pixel);
}

/* Positions after the last row, where dy is zero, reuse the first pair of x. */
void filter_bf16_list_pairs(const filter_bf16 *p, filter_bf16_chunk c, int32_t *at)
{
    const ptrdiff_t pairs = dense_row(p) / 2, all = p->steps * FILTER_BF16_STEP / 2;
    const ptrdiff_t entry = FILTER_BF16_ENTRY;
    ptrdiff_t n = 0;
    for (ptrdiff_t i = 0; i < c.images; i++)
        for (ptrdiff_t r = 0; r < c.rows; r++, n += pairs)
            count_up(at + n, pairs, (i * p->h.pitch + r) * p->w.pitch * entry, 2 * entry);
    for (; n < all; n++)
        at[n] = 0;
}

/* Return the outputs for which tap j along the axis is inside: the first, and the end. */
static ptrdiff_t first_output(const filter_bf16_axis *a, ptrdiff_t j)
{
    return max(filter_bf16_first(a, filter_bf16_phase(a, j)) - filter_bf16_shift(a, j), 0);
}

static ptrdiff_t last_output(const filter_bf16_axis *a, ptrdiff_t j)
{
    return min(filter_bf16_last(a, filter_bf16_phase(a, j)) - filter_bf16_shift(a, j), a->out);
}

ptrdiff_t filter_bf16_list_tap(const filter_bf16 *p, filter_bf16_chunk c, filter_bf16_tap tap,
                               int32_t *x_at, int32_t *dy_at)
{
    const filter_bf16_axis *h = &p->h, *w = &p->w;
    const ptrdiff_t left = first_output(w, tap.kw), right = last_output(w, tap.kw);
    const ptrdiff_t top = max(first_output(h, tap.kh), c.row);
    const ptrdiff_t bottom = min(last_output(h, tap.kh), c.row + c.rows);
    ptrdiff_t n = 0;
    fill(x_at, p->entries + 1);
    fill(dy_at, p->steps * FILTER_BF16_STEP);
    for (ptrdiff_t i = 0; i < c.images; i++)
        for (ptrdiff_t oh = top; oh < bottom && left < right; oh++) {
            ptrdiff_t ih = oh * h->stride + tap.kh * h->dilation - h->pad;
            ptrdiff_t iw = left * w->stride + tap.kw * w->dilation - w->pad;
            count_up(x_at + n, right - left, ((i * h->in + ih) * w->in + iw) * p->ic * p->element,
                     w->stride * p->ic * p->element);
            count_up(dy_at + n, right - left,
                     ((i * h->out + oh) * w->out + left) * p->oc * p->element, p->oc * p->element);
            n += right - left;
        }
    return n;
}
