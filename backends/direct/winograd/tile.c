/* tile.c - see tile.h. Columns are transformed first, then rows, a vector of channels at a time.
 * Compiled once per instruction set, for f32 and bf16. */
#include "backends/direct/arith.h"
#include "backends/direct/epilogue_vector.h"
#include "tile.h"
#include "transform.h"

enum { TILE = WINOGRAD_TILE, MAX_WINDOW = WINOGRAD_MAX_WINDOW };

/* Not inlined into the loop over channels: compilers would compute the addresses of all points
 * before that loop, more than there are registers. */
#define ALONE static __attribute__((noinline))

/* ---- squares: rows are copied in order, with zeros outside the image. Reading memory by rows
 * is much faster than by windows, and each pixel is read once */

static float *zeros(float *dst, ptrdiff_t n)
{
    memset(dst, 0, (size_t)n * sizeof *dst);
    return dst + n;
}

/* Copies pixels first .. end of a row of s's images. */
static float *copy_row(const winograd_squares *s, const T *row, ptrdiff_t first, ptrdiff_t end,
                       float *dst)
{
    const ptrdiff_t c = s->image.c;
    const ptrdiff_t inside = min(max(first, 0), end), right = max(inside, min(end, s->image.w));
    dst = zeros(dst, (inside - first) * c);
    for (ptrdiff_t i = inside * c; i < right * c; i += VECTOR, dst += VECTOR)
        *(vector *)dst = load_vector(row + i);
    return zeros(dst, (end - right) * c);
}

/* Copies the pixels that the squares of n tiles of a row read, from `at` on. Returns how many
 * pixels a row has. */
static ptrdiff_t copy_rows(const winograd_squares *s, winograd_place at, ptrdiff_t n)
{
    const direct_size *of = &s->image;
    const ptrdiff_t pixels = (n - 1) * TILE + s->size, first = at.column - s->left;
    float *dst = s->copy;
    for (ptrdiff_t i = 0; i < s->size; i++) {
        const ptrdiff_t row = at.row - s->top + i;
        if (row >= 0 && row < of->h)
            dst = copy_row(s, s->tensor + (at.image * of->h + row) * of->w * of->c, first,
                           first + pixels, dst);
        else
            dst = zeros(dst, pixels * of->c);
    }
    return pixels;
}

ALWAYS void to_points(const int window, const int size, const vector x[], vector *y, ptrdiff_t step)
{
    if (size == window)
        winograd_window(window, x, y, step);
    else
        winograd_to_points(window, size, x, y, step);
}

/* Computes the points of a vector of channels. */
ALWAYS void read_channels(const int window, const int size, const float *square, ptrdiff_t line,
                          ptrdiff_t pixel, float *v, ptrdiff_t step)
{
    vector half[MAX_WINDOW * MAX_WINDOW], x[MAX_WINDOW], y[MAX_WINDOW];
#pragma GCC unroll 8
    for (int j = 0; j < size; j++, square += pixel) {
#pragma GCC unroll 8
        for (int i = 0; i < size; i++)
            x[i] = *(const vector *)(square + i * line);
        to_points(window, size, x, half + j, window);
    }
#pragma GCC unroll 8
    for (int i = 0; i < window; i++) {
        to_points(window, size, half + (ptrdiff_t)i * window, y, 1);
#pragma GCC unroll 8
        for (int j = 0; j < window; j++, v += step)
            *(vector *)v = y[j];
    }
}

typedef void reader(const float *square, ptrdiff_t line, ptrdiff_t pixel, float *v, ptrdiff_t step);

ALONE void window_of_3(const float *square, ptrdiff_t line, ptrdiff_t pixel, float *v,
                       ptrdiff_t step)
{
    read_channels(TILE + 2, TILE + 2, square, line, pixel, v, step);
}

ALONE void window_of_5(const float *square, ptrdiff_t line, ptrdiff_t pixel, float *v,
                       ptrdiff_t step)
{
    read_channels(TILE + 4, TILE + 4, square, line, pixel, v, step);
}

ALONE void tile_of_3(const float *square, ptrdiff_t line, ptrdiff_t pixel, float *v, ptrdiff_t step)
{
    read_channels(TILE + 2, TILE, square, line, pixel, v, step);
}

ALONE void tile_of_5(const float *square, ptrdiff_t line, ptrdiff_t pixel, float *v, ptrdiff_t step)
{
    read_channels(TILE + 4, TILE, square, line, pixel, v, step);
}

static reader *reader_of(const winograd *p, const winograd_squares *s)
{
    if (s->size == TILE)
        return p->kernel == 3 ? tile_of_3 : tile_of_5;
    return p->kernel == 3 ? window_of_3 : window_of_5;
}

void TYPED(winograd_read)(const winograd *p, const winograd_squares *s, ptrdiff_t first,
                          ptrdiff_t n, float *v)
{
    const ptrdiff_t c = s->image.c;
    reader *const read = reader_of(p, s);
    for (ptrdiff_t end = first + n, tiles; first < end; first += tiles) {
        const winograd_place at = winograd_place_of(p, first);
        tiles = min(min(end - first, p->tiles_per_copy), p->across - at.column / TILE);
        const ptrdiff_t line = copy_rows(s, at, tiles) * c;
        for (ptrdiff_t i = 0; i < tiles; i++)
            for (ptrdiff_t k = 0; k < c; k += VECTOR, v += VECTOR)
                read(s->copy + i * TILE * c + k, line, c, v, s->step);
    }
}

/* Returns the first pixel of the tensor that no square before this tile reads, taking the last
 * rows as divided evenly among a row of tiles. */
static ptrdiff_t first_new(const winograd *p, const winograd_squares *s, ptrdiff_t tile)
{
    const winograd_place at = winograd_place_of(p, tile);
    const ptrdiff_t row = at.image * s->image.h + at.row + s->size - TILE - s->top;
    const ptrdiff_t pixel = row * s->image.w + TILE * s->image.w * (at.column / TILE) / p->across;
    return min(max(pixel, 0), p->n * s->image.h * s->image.w);
}

winograd_prefetch TYPED(winograd_prefetch_of)(const winograd *p, const winograd_squares *s,
                                              ptrdiff_t first, ptrdiff_t n)
{
    const ptrdiff_t begin = first_new(p, s, first), end = first_new(p, s, first + n);
    return (winograd_prefetch){s->tensor + begin * s->image.c, end - begin, s->image.c, s->image.c};
}

/* ---- results */

/* The destination of a tile: its rows and columns inside the image, elements of a row and of a
 * pixel. */
typedef struct {
    ptrdiff_t bottom, right;
    ptrdiff_t line, pixel;
} tile_bounds;

ALWAYS void write_channels(const int window, const tile_bounds *t, const float *m, ptrdiff_t step,
                           epilogue_operands e, T *dst)
{
    vector half[TILE * MAX_WINDOW], x[MAX_WINDOW], y[TILE], b = {0};
    if (e.bias != NULL)
        b = load_vector(e.bias);
    e.bias = NULL;
#pragma GCC unroll 8
    for (int j = 0; j < window; j++) {
#pragma GCC unroll 8
        for (int i = 0; i < window; i++)
            x[i] = *(const vector *)(m + (i * window + j) * step);
        winograd_from_points(window, TILE, x, half + j, window);
    }
#pragma GCC unroll 4
    for (int i = 0; i < TILE; i++) {
        const ptrdiff_t line = i * t->line;
        winograd_from_points(window, TILE, half + (ptrdiff_t)i * window, y, 1);
#pragma GCC unroll 4
        for (int j = 0; j < TILE; j++)
            if (i < t->bottom && j < t->right) {
                const ptrdiff_t at = line + j * t->pixel;
                store_vector(dst + at, epilogue_vector(&e, at, y[j] + b));
            }
    }
}

ALONE void write_of_3(const tile_bounds *t, const float *m, ptrdiff_t step,
                      const epilogue_operands *e, T *dst)
{
    write_channels(TILE + 2, t, m, step, *e, dst);
}

ALONE void write_of_5(const tile_bounds *t, const float *m, ptrdiff_t step,
                      const epilogue_operands *e, T *dst)
{
    write_channels(TILE + 4, t, m, step, *e, dst);
}

/* Returns the epilogue's operands for outputs from `first` on; the addend from element `at` on. */
static epilogue_operands operands_of(const winograd *p, const adj_call *c, ptrdiff_t first,
                                     ptrdiff_t at)
{
    const direct_epilogue *e = &p->epilogue;
    return (epilogue_operands){e->bias_in >= 0 ? (const T *)c->in[e->bias_in] + first : NULL,
                               e->addend_in >= 0 ? (const T *)c->in[e->addend_in] + at : NULL,
                               e->has_relu};
}

void TYPED(winograd_write)(const winograd *p, const adj_call *c, ptrdiff_t tile, ptrdiff_t panel,
                           const float *m)
{
    const direct_size *of = &p->dst;
    const winograd_place place = winograd_place_of(p, tile);
    const tile_bounds t = {of->h - place.row, of->w - place.column, of->w * of->c, of->c};
    const ptrdiff_t first = panel * WINOGRAD_PANEL, width = winograd_width_of(p, panel);
    const ptrdiff_t at = ((place.image * of->h + place.row) * of->w + place.column) * of->c + first;
    T *dst = c->out[0];
    for (ptrdiff_t k = 0; k < width; k += VECTOR) {
        const epilogue_operands e = operands_of(p, c, first + k, at + k);
        if (p->kernel == 3)
            write_of_3(&t, m + k, p->m_step, &e, dst + at + k);
        else
            write_of_5(&t, m + k, p->m_step, &e, dst + at + k);
    }
}
