/* tile.c - see tile.h. Columns are transformed first, then rows, a vector of
 * channels at a time. Compiled once per instruction set. */
#include "tile.h"
#include "transform.h"

enum { WINDOW = WINOGRAD_WINDOW, TILE = WINOGRAD_TILE };

/* The part of a square of so many pixels that is inside the image. */
typedef struct {
    ptrdiff_t top, bottom, left, right;
} inside;

ALWAYS ptrdiff_t between(ptrdiff_t low, ptrdiff_t x, ptrdiff_t high)
{
    return x < low ? low : x > high ? high : x;
}

ALWAYS inside inside_of(const winograd_square *s, ptrdiff_t size)
{
    return (inside){between(0, -s->row, size), between(0, s->h - s->row, size),
                    between(0, -s->column, size), between(0, s->w - s->column, size)};
}

ALWAYS void transform(const int size, const vector x[], vector *y, ptrdiff_t step)
{
    if (size == WINDOW)
        winograd_window(x, y, step);
    else
        winograd_to_points(x, y, step);
}

/* is_whole: all pixels are inside. */
ALWAYS void read_square(const int size, const int is_whole, const winograd_square *s,
                        const inside *in, const float *image, float *v, ptrdiff_t step)
{
    const ptrdiff_t pixel = s->c, line = s->w * s->c;
    const ptrdiff_t start = (s->row * s->w + s->column) * s->c;
    for (ptrdiff_t c = 0; c < s->c; c += VECTOR) {
        vector half[WINDOW * WINDOW], x[WINDOW], y[WINDOW];
#pragma GCC unroll 6
        for (int j = 0; j < size; j++) {
            int is_column = is_whole || (j >= in->left && j < in->right);
#pragma GCC unroll 6
            for (int i = 0; i < size; i++) {
                int is_pixel = is_whole || (is_column && i >= in->top && i < in->bottom);
                x[i] = (vector){0};
                if (is_pixel)
                    x[i] = *(const vector *)(image + start + i * line + j * pixel + c);
            }
            transform(size, x, half + j, WINDOW);
        }
#pragma GCC unroll 6
        for (int i = 0; i < WINDOW; i++) {
            transform(size, half + (ptrdiff_t)i * WINDOW, y, 1);
#pragma GCC unroll 6
            for (int j = 0; j < WINDOW; j++)
                *(vector *)(v + (i * WINDOW + j) * step + c) = y[j];
        }
    }
}

ALWAYS void read_any(const int size, const winograd_square *s, const float *image, float *v,
                     ptrdiff_t step)
{
    inside in = inside_of(s, size);
    if (in.top == 0 && in.left == 0 && in.bottom == size && in.right == size)
        read_square(size, 1, s, &in, image, v, step);
    else
        read_square(size, 0, s, &in, image, v, step);
}

/* Memory in its own order is prefetched several times as fast as the lines of one window. */
void DIRECT(winograd_prefetch)(const winograd_square *s, const float *image, ptrdiff_t pixels,
                               ptrdiff_t first, ptrdiff_t columns)
{
    const ptrdiff_t line = 16, across = (s->w + TILE - 1) / TILE;
    ptrdiff_t part = (TILE * s->w + across - 1) / across;
    ptrdiff_t pixel = (s->row + TILE) * s->w + s->column / TILE * part;
    ptrdiff_t end = pixel + part < pixels ? pixel + part : pixels;
    for (; pixel < end; pixel++)
        for (ptrdiff_t k = 0; k < columns; k += line)
            __builtin_prefetch(image + pixel * s->c + first + k);
}

void DIRECT(winograd_read_window)(const winograd *p, const float *src, ptrdiff_t tile, float *v)
{
    winograd_place at = winograd_place_of(p, tile);
    winograd_square s = {p->src.h, p->src.w, p->src.c, at.row, at.column};
    const float *image = src + at.image * s.h * s.w * s.c;
    DIRECT(winograd_prefetch)(&s, image, (p->n - at.image) * s.h * s.w, 0, s.c);
    s.row -= p->top;
    s.column -= p->left;
    read_any(WINDOW, &s, image, v, p->v_step);
}

void DIRECT(winograd_read_tile)(const winograd_square *s, const float *image, float *v,
                                ptrdiff_t step)
{
    read_any(TILE, s, image, v, step);
}

void DIRECT(winograd_write_tile)(const winograd_square *s, float *image, ptrdiff_t first,
                                 ptrdiff_t columns, const float *m, ptrdiff_t step,
                                 const float *bias)
{
    inside in = inside_of(s, TILE);
    float *tile = image + (s->row * s->w + s->column) * s->c + first;
    for (ptrdiff_t k = 0; k < columns; k += VECTOR) {
        vector half[TILE * WINDOW], x[WINDOW], y[TILE], b = {0};
        if (bias != NULL)
            b = *(const vector *)(bias + k);
#pragma GCC unroll 6
        for (int j = 0; j < WINDOW; j++) {
#pragma GCC unroll 6
            for (int i = 0; i < WINDOW; i++)
                x[i] = *(const vector *)(m + (i * WINDOW + j) * step + k);
            winograd_from_points(x, half + j, WINDOW);
        }
#pragma GCC unroll 4
        for (int i = 0; i < TILE; i++) {
            winograd_from_points(half + (ptrdiff_t)i * WINDOW, y, 1);
            for (int j = 0; j < TILE && i < in.bottom; j++)
                if (j < in.right)
                    *(vector *)(tile + (i * s->w + j) * s->c + k) = y[j] + b;
        }
    }
}
