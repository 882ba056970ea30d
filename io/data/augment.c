/* augment.c - random augmentation of images and batches: brightness, contrast and saturation of
 * pixels; flip, shift and cutout of normalized images; mixup of a batch. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "prepare.h"

uint64_t io_image_key(uint64_t seed, int64_t epoch, int64_t k)
{
    return io_key(io_key(seed, 0x6175676d656e74u, (uint64_t)epoch), 0, (uint64_t)k);
}

uint64_t io_mixup_key(uint64_t seed, int64_t epoch, int64_t step)
{
    return io_key(io_key(seed, 0x6d69787570u, (uint64_t)epoch), 1, (uint64_t)step);
}

/* ---- flip, shift and cutout ---- */

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

/* ---- color jitter ----
 *
 * torchvision's formulas: the image is mixed with black, with its mean gray and with its own gray,
 * f * x + (1 - f) * other, and what leaves 0 .. 255 is cut off after each. Gray is the luma of
 * ITU-R BT.601. */

enum { COLORS = 3 };

static double gray(const float *pixel, int64_t colors)
{
    return colors == COLORS
               ? 0.299 * (double)pixel[0] + 0.587 * (double)pixel[1] + 0.114 * (double)pixel[2]
               : (double)pixel[0];
}

/* Blends a pixel's colors with the value other: factor * color + (1 - factor) * other. */
static void blend(float *pixel, int64_t colors, double factor, double other)
{
    for (int64_t c = 0; c < colors; c++) {
        double v = factor * (double)pixel[c] + (1 - factor) * other;
        pixel[c] = v < 0 ? 0 : v > 255 ? 255 : (float)v;
    }
}

static double factor_of(double jitter, uint64_t bits)
{
    double low = fmax(0, 1 - jitter);
    return low + (1 + jitter - low) * io_unit(bits);
}

void io_color_jitter(double jitter, uint64_t key, adj_image_size size, float *x)
{
    int64_t pixels = size.h * size.w, colors = size.c >= COLORS ? COLORS : 1;
    double brightness = factor_of(jitter, io_mix(key + DRAW_BRIGHTNESS));
    double contrast = factor_of(jitter, io_mix(key + DRAW_CONTRAST));
    double saturation = factor_of(jitter, io_mix(key + DRAW_SATURATION)), sum = 0;

    for (int64_t i = 0; i < pixels; i++) {
        float *pixel = x + i * size.c;
        blend(pixel, colors, brightness, 0);
        sum += gray(pixel, colors);
    }
    for (int64_t i = 0; i < pixels; i++) {
        float *pixel = x + i * size.c;
        blend(pixel, colors, contrast, sum / (double)pixels);
        if (colors == COLORS)
            blend(pixel, colors, saturation, gray(pixel, colors));
    }
}

/* ---- mixup ----
 *
 * The mixing weight is drawn from Beta(alpha, alpha) as g / (g + h) for two draws from
 * Gamma(alpha), by Marsaglia and Tsang (A simple method for generating gamma variables, 2000).
 * Since both images of a pair are in the batch, mix and 1 - mix make the same batch in another
 * order; the larger one leaves to each image its own label as the weightier. */

typedef struct {
    uint64_t key, used;
} draws;

/* Uniform in (0, 1): its logarithm is finite and negative. */
static double uniform(draws *d) { return io_unit(io_mix(d->key + d->used++)) + 0x1p-54; }

/* Box and Muller's first. */
static double normal(draws *d)
{
    double radius = sqrt(-2 * log(uniform(d)));
    return radius * cos(6.283185307179586 * uniform(d));
}

/* The logarithm of a draw from Gamma(alpha): for small alpha the draw itself underflows. Below 1 it
 * is one from Gamma(alpha + 1) times u^(1 / alpha). */
static double log_gamma_draw(double alpha, draws *d)
{
    double boost = alpha < 1 ? log(uniform(d)) / alpha : 0;
    double shape = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3, scale = 1 / sqrt(9 * shape);

    for (;;) {
        double z = normal(d), v = 1 + scale * z, u = uniform(d);
        if (v <= 0)
            continue;
        v = v * v * v;
        if (log(u) < 0.5 * z * z + shape * (1 - v + log(v)))
            return log(shape * v) + boost;
    }
}

double io_mixup_share(double alpha, uint64_t key)
{
    draws d = {key, 0};
    double g = log_gamma_draw(alpha, &d), h = log_gamma_draw(alpha, &d);
    return 1 / (1 + exp(-fabs(g - h)));
}

void io_mixup(float *x, int64_t n, int64_t elems, float mix)
{
    for (int64_t i = 0; i < n / 2; i++) {
        float *a = x + i * elems, *b = x + (n - 1 - i) * elems;
        for (int64_t k = 0; k < elems; k++) {
            float kept = a[k];
            a[k] = mix * kept + (1 - mix) * b[k];
            b[k] = mix * b[k] + (1 - mix) * kept;
        }
    }
}
