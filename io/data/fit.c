/* fit.c - an image brought to other channels and another size.
 *
 * Each axis by itself, as a weighted mean of pixels: where it shrinks, of the area that a new pixel
 * covers, a pixel covered in part counting in part; where it grows, of the two pixels whose centres
 * are nearest to its own (bilinear, centres at half pixels; beyond the edge, the edge). */
#include <math.h>
#include <string.h>

#include "data.h"

/* Pixel i of the new axis: weight[k] of old pixel first + k, count of them. */
typedef struct {
    int64_t first, count;
} taps;

static taps shrunk_taps(int64_t i, int64_t have, int64_t want, float *weight)
{
    double scale = (double)have / (double)want, from = (double)i * scale, to = from + scale;
    int64_t first = i * have / want, end = ((i + 1) * have + want - 1) / want;

    for (int64_t k = first; k < end; k++)
        weight[k - first] =
            (float)((fmin((double)k + 1, to) - fmax((double)k, from)) / (to - from));
    return (taps){first, end - first};
}

static taps grown_taps(int64_t i, int64_t have, int64_t want, float *weight)
{
    double at = ((double)i + 0.5) * (double)have / (double)want - 0.5;
    at = fmin(fmax(at, 0), (double)(have - 1));
    int64_t first = (int64_t)at;
    weight[0] = (float)(1 - (at - (double)first));
    weight[1] = (float)(at - (double)first);
    return (taps){first, first + 1 < have ? 2 : 1};
}

/* x [rows, have, inner] to y [rows, want, inner]; weight: room for have + 2 of them. */
static void fit_axis(const float *x, int64_t rows, int64_t have, int64_t want, int64_t inner,
                     float *y, float *weight)
{
    for (int64_t i = 0; i < want; i++) {
        taps t =
            want < have ? shrunk_taps(i, have, want, weight) : grown_taps(i, have, want, weight);
        for (int64_t r = 0; r < rows; r++) {
            const float *from = x + (r * have + t.first) * inner;
            float *to = y + (r * want + i) * inner;
            for (int64_t j = 0; j < inner; j++)
                to[j] = weight[0] * from[j];
            for (int64_t k = 1; k < t.count; k++)
                for (int64_t j = 0; j < inner; j++)
                    to[j] += weight[k] * from[k * inner + j];
        }
    }
}

/* One pixel; luma as in ITU-R BT.601. */
static void convert_pixel(const float *x, int64_t from, float *y, int64_t to)
{
    int64_t colours = from >= 3 ? 3 : 1;

    if (to >= 3)
        for (int64_t c = 0; c < 3; c++)
            y[c] = x[colours == 3 ? c : 0];
    else
        y[0] = colours == 3 ? 0.299f * x[0] + 0.587f * x[1] + 0.114f * x[2] : x[0];
    if (to == 2 || to == 4)
        y[to - 1] = from == 2 || from == 4 ? x[from - 1] : 255;
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* The image with to's channels, the one with to's height, too, and weights. */
size_t io_fit_room(image_size from, image_size to)
{
    return (size_t)((from.h + to.h) * from.w * to.c + larger(from.h, from.w) + 2);
}

void io_fit(const float *image, image_size from, float *pixels, image_size to, float *room)
{
    float *high = room + from.h * from.w * to.c, *weight = high + to.h * from.w * to.c;

    if (from.c != to.c) {
        for (int64_t i = 0; i < from.h * from.w; i++)
            convert_pixel(image + i * from.c, from.c, room + i * to.c, to.c);
        image = room;
    }
    if (from.h != to.h) { /* first: its sums run over whole rows */
        fit_axis(image, 1, from.h, to.h, from.w * to.c, high, weight);
        image = high;
    }
    if (from.w != to.w)
        fit_axis(image, to.h, from.w, to.w, to.c, pixels, weight);
    else
        memcpy(pixels, image, (size_t)size_elems(to) * sizeof *pixels);
}

void io_interleave(const void *planes, int64_t c, int64_t pixels, size_t elem, void *image)
{
    for (int64_t i = 0; i < pixels; i++)
        for (int64_t k = 0; k < c; k++)
            memcpy((char *)image + (size_t)(i * c + k) * elem,
                   (const char *)planes + (size_t)(k * pixels + i) * elem, elem);
}
