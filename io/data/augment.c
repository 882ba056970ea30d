/* augment.c - geometric augmentation of training images: flip, shift and cutout. */
#include <stdlib.h>
#include <string.h>

#include "augment.h"

uint64_t io_image_key(uint64_t seed, int64_t epoch, int64_t k)
{
    return io_key(io_key(seed, 0x6175676d656e74u, (uint64_t)epoch), 0, (uint64_t)k);
}

static void flip(adj_image_size s, float *x)
{
    for (int64_t h = 0; h < s.h; h++)
        for (int64_t w = 0; w < s.w / 2; w++) {
            float *left = x + (h * s.w + w) * s.c, *right = x + (h * s.w + s.w - 1 - w) * s.c;
            for (int64_t c = 0; c < s.c; c++) {
                float kept = left[c];
                left[c] = right[c];
                right[c] = kept;
            }
        }
}

static void fill(float *to, int64_t pixels, int64_t c, const float value[])
{
    for (int64_t i = 0; i < pixels; i++)
        memcpy(to + i * c, value, (size_t)c * sizeof *to);
}

/* x[h][w] = x[h - dy][w - dx] in place: rows are visited so that none is read after it was
 * written. */
static void shift(adj_image_size s, int64_t dy, int64_t dx, const float black[], float *x)
{
    int64_t row = s.w * s.c, new = llabs(dx) < s.w ? llabs(dx) : s.w, moved = new *s.c;

    for (int64_t k = 0; k < s.h; k++) {
        int64_t h = dy > 0 ? s.h - 1 - k : k, from = h - dy;
        float *to = x + h * row;
        if (from < 0 || from >= s.h) {
            fill(to, s.w, s.c, black);
            continue;
        }
        memmove(to + (dx > 0 ? moved : 0), x + from * row + (dx < 0 ? moved : 0),
                (size_t)(row - moved) * sizeof *to);
        fill(to + (dx > 0 ? 0 : row - moved), new, s.c, black);
    }
}

static void draw_shift(int64_t max, uint64_t seed, uint64_t drawn, int64_t *dy, int64_t *dx)
{
    int64_t side = 2 * max + 1, offsets[(2 * ADJ_MAX_SHIFT + 1) * (2 * ADJ_MAX_SHIFT + 1)];

    /* the first of the offsets in a random order; ~seed: not the order of the images */
    adj_shuffle(side * side, ~seed, drawn, offsets);
    *dy = offsets[0] / side - max;
    *dx = offsets[0] % side - max;
}

static int64_t between(int64_t value, int64_t min, int64_t max)
{
    return value < min ? min : value > max ? max : value;
}

/* The mean is 0 after normalizing. */
static void cutout(adj_image_size s, int64_t side, int64_t center_h, int64_t center_w, float *x)
{
    int64_t top = center_h - side / 2, left = center_w - side / 2;
    int64_t first = between(left, 0, s.w), end = between(left + side, 0, s.w);

    for (int64_t h = between(top, 0, s.h); h < between(top + side, 0, s.h); h++)
        memset(x + (h * s.w + first) * s.c, 0, (size_t)((end - first) * s.c) * sizeof *x);
}

void io_move(const adj_augment *a, uint64_t key, uint64_t seed, uint64_t drawn, const float black[],
             adj_image_size size, float *x)
{
    if (a->flip && io_below(io_mix(key + DRAW_FLIP), 2) == 1)
        flip(size, x);
    if (a->shift > 0) {
        int64_t dy, dx;
        draw_shift(a->shift, seed, drawn, &dy, &dx);
        shift(size, dy, dx, black, x);
    }
    if (a->cutout > 0)
        cutout(size, a->cutout, io_below(io_mix(key + DRAW_CUTOUT_H), size.h),
               io_below(io_mix(key + DRAW_CUTOUT_W), size.w), x);
}
