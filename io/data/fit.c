/* fit.c - an image brought to other channels and another size.
 *
 * Each axis by itself, as a weighted mean of pixels: where it shrinks, of the area that a new pixel
 * covers, a pixel covered in part counting in part; where it grows, of the two pixels whose centres
 * are nearest to its own (bilinear, centres at half pixels; beyond the edge, the edge). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"

/* ---- an axis ---- */

/* New pixel i: at[i].count old ones from at[i].first on, with the weights from at[i].weight on. */
typedef struct {
    int64_t first, count, weight;
} taps;

typedef struct {
    taps *at;
    float *weight;
} axis;

/* Its weights to w; returns how many. */
static int64_t shrink(int64_t i, int64_t have, int64_t want, taps *t, float *w)
{
    double scale = (double)have / (double)want, from = (double)i * scale, to = from + scale;
    int64_t end = ((i + 1) * have + want - 1) / want;

    t->first = i * have / want;
    for (int64_t k = t->first; k < end; k++)
        *w++ = (float)((fmin((double)k + 1, to) - fmax((double)k, from)) / (to - from));
    return end - t->first;
}

static int64_t grow(int64_t i, int64_t have, int64_t want, taps *t, float *w)
{
    double at = ((double)i + 0.5) * (double)have / (double)want - 0.5;
    at = fmin(fmax(at, 0), (double)(have - 1));
    t->first = (int64_t)at;
    w[0] = (float)(1 - (at - (double)t->first));
    w[1] = (float)(at - (double)t->first);
    return w[1] > 0 ? 2 : 1;
}

static void axis_free(axis *a)
{
    free(a->at);
    free(a->weight);
}

/* Whether there was memory; to be freed in every case. */
static int axis_new(axis *a, int64_t have, int64_t want)
{
    int64_t used = 0;
    a->at = malloc((size_t)want * sizeof *a->at);
    a->weight = malloc((size_t)(have + 2 * want + 2) * sizeof *a->weight);
    if (a->at == NULL || a->weight == NULL)
        return 0;
    for (int64_t i = 0; i < want; i++) {
        taps *t = &a->at[i];
        t->weight = used;
        t->count = (want < have ? shrink : grow)(i, have, want, t, a->weight + used);
        used += t->count;
    }
    return 1;
}

/* ---- rows ---- */

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

/* Row r with c channels. */
static void take_row(const any_image *x, int64_t r, int64_t c, float *row)
{
    int64_t own = x->size.c, first = r * x->size.w * own;
    float pixel[ADJ_MAX_CHANNELS];

    for (int64_t i = 0; i < x->size.w; i++, row += c) {
        for (int64_t k = 0; k < own; k++)
            pixel[k] =
                x->bytes != NULL ? x->bytes[first + i * own + k] : x->floats[first + i * own + k];
        if (own == c)
            memcpy(row, pixel, (size_t)c * sizeof *row);
        else
            convert_pixel(pixel, own, row, c);
    }
}

static void add_scaled(const float *x, int64_t n, float weight, int is_first, float *y)
{
    for (int64_t j = 0; j < n; j++)
        y[j] = is_first ? weight * x[j] : y[j] + weight * x[j];
}

/* The weighted sum of the rows under a new one. */
static void fit_rows(const any_image *x, const axis *a, int64_t i, int64_t c, float *row,
                     float *sum)
{
    const taps *t = &a->at[i];
    for (int64_t k = 0; k < t->count; k++) {
        take_row(x, t->first + k, c, row);
        add_scaled(row, x->size.w * c, a->weight[t->weight + k], k == 0, sum);
    }
}

static void fit_columns(const float *row, const axis *a, int64_t want, int64_t c, float *pixels)
{
    for (int64_t i = 0; i < want; i++, pixels += c) {
        const taps *t = &a->at[i];
        for (int64_t k = 0; k < t->count; k++)
            add_scaled(row + (t->first + k) * c, c, a->weight[t->weight + k], k == 0, pixels);
    }
}

int io_fit(const any_image *x, float *pixels, image_size to)
{
    axis rows = {0}, columns = {0};
    size_t row = (size_t)(x->size.w * to.c);
    float *room = malloc(2 * row * sizeof *room);
    int is_good =
        axis_new(&rows, x->size.h, to.h) && axis_new(&columns, x->size.w, to.w) && room != NULL;

    for (int64_t i = 0; is_good && i < to.h; i++) {
        fit_rows(x, &rows, i, to.c, room, room + row);
        fit_columns(room + row, &columns, to.w, to.c, pixels + i * to.w * to.c);
    }
    free(room);
    axis_free(&rows);
    axis_free(&columns);
    return is_good;
}

void io_interleave(const void *planes, int64_t c, int64_t pixels, size_t elem, void *image)
{
    for (int64_t i = 0; i < pixels; i++)
        for (int64_t k = 0; k < c; k++)
            memcpy((char *)image + (size_t)(i * c + k) * elem,
                   (const char *)planes + (size_t)(k * pixels + i) * elem, elem);
}
