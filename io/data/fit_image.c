/* fit_image.c - brings an image to the channels and the size that a net takes, whatever file or
 * memory it comes from. Every reader, batch and loader goes through io_fit, so the same pixels
 * always give the same bits.
 *
 * Channels come first, then the rows, then the columns. An axis is a weighted mean of pixels: where
 * it shrinks, of the area that a new pixel covers, a pixel covered in part counting in part; where
 * it grows, of the two pixels whose centers are nearest (bilinear, centers at half pixels; beyond
 * the edge, the edge). The weights are computed once for a pair of sizes; an image allocates
 * nothing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"

/* ---- an axis ---- */

/* Writes the weights of new pixel i to w; returns their number. */
static int64_t shrink(int64_t i, int64_t have, int64_t want, fit_taps *t, float *w)
{
    double scale = (double)have / (double)want, from = (double)i * scale, to = from + scale;
    int64_t end = ((i + 1) * have + want - 1) / want;

    t->first = i * have / want;
    for (int64_t k = t->first; k < end; k++)
        *w++ = (float)((fmin((double)k + 1, to) - fmax((double)k, from)) / (to - from));
    return end - t->first;
}

static int64_t grow(int64_t i, int64_t have, int64_t want, fit_taps *t, float *w)
{
    double at = ((double)i + 0.5) * (double)have / (double)want - 0.5;
    at = fmin(fmax(at, 0), (double)(have - 1));
    t->first = (int64_t)at;
    w[0] = (float)(1 - (at - (double)t->first));
    w[1] = (float)(at - (double)t->first);
    return w[1] > 0 ? 2 : 1;
}

/* Computes the weights of an axis. Returns 0 if memory is short. */
static int axis_open(fit_axis *a, int64_t have, int64_t want)
{
    int64_t used = 0;
    a->at = calloc((size_t)want, sizeof *a->at);
    a->weight = calloc((size_t)(have + 2 * want + 2), sizeof *a->weight);
    if (a->at == NULL || a->weight == NULL)
        return 0;
    for (int64_t i = 0; i < want; i++) {
        fit_taps *t = &a->at[i];
        t->weight = used;
        t->count = (want < have ? shrink : grow)(i, have, want, t, a->weight + used);
        used += t->count;
    }
    return 1;
}

static void axis_close(fit_axis *a)
{
    free(a->at);
    free(a->weight);
    *a = (fit_axis){0};
}

/* ---- channels ---- */

int io_can_convert(int64_t from, int64_t to)
{
    return from == to || (io_is_channels(from) && io_is_channels(to));
}

static int has_alpha(int64_t channels) { return channels == 2 || channels == 4; }

/* Luma as in ITU-R BT.601. */
static float luma(const float *x) { return 0.299f * x[0] + 0.587f * x[1] + 0.114f * x[2]; }

static float lay_over(float x, float a, float under) { return (a * x + (255 - a) * under) / 255; }

static void convert_pixel(const fitting *f, const float *x, float *y)
{
    const int64_t from = f->from.c, to = f->to.c, colors = from >= 3 ? 3 : 1;
    float own[3] = {0};

    memcpy(own, x, (size_t)colors * sizeof *own);
    if (has_alpha(from) && !has_alpha(to))
        for (int64_t c = 0; c < colors; c++)
            own[c] = lay_over(own[c], x[from - 1], f->background[c]);
    if (to >= 3)
        for (int64_t c = 0; c < 3; c++)
            y[c] = own[colors == 3 ? c : 0];
    else
        y[0] = colors == 3 ? luma(own) : own[0];
    if (has_alpha(to))
        y[to - 1] = has_alpha(from) ? x[from - 1] : 255;
}

/* ---- rows ---- */

enum { CHUNK = 256 }; /* pixels of a row that are computed together, on the stack */

/* Writes pixels first .. first+n-1 of row r, n <= CHUNK, with the new channels. */
static void take_pixels(const fitting *f, const any_image *x, int64_t r, int64_t first, int64_t n,
                        float *row)
{
    const int64_t c = f->from.c, at = (r * f->from.w + first) * c;
    float bytes[CHUNK * ADJ_MAX_CHANNELS];
    const float *own = x->floats != NULL ? x->floats + at : bytes;

    for (int64_t i = 0; x->floats == NULL && i < n * c; i++)
        bytes[i] = x->bytes[at + i];
    if (c == f->to.c)
        memcpy(row, own, (size_t)(n * c) * sizeof *row);
    else
        for (int64_t i = 0; i < n; i++)
            convert_pixel(f, own + i * c, row + i * f->to.c);
}

static void add_scaled(const float *x, int64_t n, float weight, float *y)
{
    for (int64_t j = 0; j < n; j++)
        y[j] += weight * x[j];
}

/* Writes pixels first .. first+n-1 of the weighted sum of the rows under new row i. */
static void sum_rows(const fitting *f, const any_image *x, int64_t i, int64_t first, int64_t n,
                     float *sum)
{
    const fit_taps *t = &f->rows.at[i];
    float row[CHUNK * ADJ_MAX_CHANNELS];

    memset(sum, 0, (size_t)(n * f->to.c) * sizeof *sum);
    for (int64_t k = 0; k < t->count; k++) {
        take_pixels(f, x, t->first + k, first, n, row);
        add_scaled(row, n * f->to.c, f->rows.weight[t->weight + k], sum);
    }
}

/* Returns the number of columns in the chunk that begins with column. */
static int64_t chunk_from(const fitting *f, int64_t column)
{
    return f->from.w - column < CHUNK ? f->from.w - column : CHUNK;
}

/* Writes new row i. The sums of the rows under it are computed a chunk of columns at a time. */
static void fit_row(const fitting *f, const any_image *x, int64_t i, float *y)
{
    const int64_t c = f->to.c;
    float sum[CHUNK * ADJ_MAX_CHANNELS];
    int64_t first = 0, n = 0; /* columns in sum */

    for (int64_t ow = 0; ow < f->to.w; ow++, y += c) {
        const fit_taps *t = &f->columns.at[ow];
        memset(y, 0, (size_t)c * sizeof *y);
        for (int64_t k = 0; k < t->count; k++) {
            const int64_t column = t->first + k;
            if (column < first || column >= first + n) {
                first = column;
                n = chunk_from(f, column);
                sum_rows(f, x, i, first, n, sum);
            }
            add_scaled(sum + (column - first) * c, c, f->columns.weight[t->weight + k], y);
        }
    }
}

static void copy_row(const fitting *f, const any_image *x, int64_t i, float *y)
{
    for (int64_t w = 0; w < f->from.w; w += CHUNK)
        take_pixels(f, x, i, w, chunk_from(f, w), y + w * f->to.c);
}

/* ---- use ---- */

int io_fitting_open(fitting *f, adj_image_size from, adj_image_size to, const uint8_t background[3])
{
    static const uint8_t black[3];
    const uint8_t *b = background != NULL ? background : black;

    *f = (fitting){.from = from, .to = to, .background = {b[0], b[1], b[2]}};
    if (from.c < 3)
        f->background[0] = floorf(luma(f->background) + 0.5f);
    f->resizes = !same_sides(from, to);
    if (!f->resizes || (axis_open(&f->rows, from.h, to.h) && axis_open(&f->columns, from.w, to.w)))
        return 1;
    io_fitting_close(f);
    return 0;
}

void io_fitting_close(fitting *f)
{
    axis_close(&f->rows);
    axis_close(&f->columns);
}

void io_fit(const fitting *f, const any_image *x, float *pixels)
{
    for (int64_t i = 0; i < f->to.h; i++)
        (f->resizes ? fit_row : copy_row)(f, x, i, pixels + i * f->to.w * f->to.c);
}

adj_status io_read_fitted(const adj_dataset *d, int64_t i, const fitting *f, float *room,
                          float *pixels, adj_error *error)
{
    const int is_same = same_size(f->from, f->to);
    adj_status status = adj_dataset_read(d, i, is_same ? pixels : room, error);
    if (status == ADJ_OK && !is_same)
        io_fit(f, &(any_image){.floats = room}, pixels);
    return status;
}

void io_interleave(const void *planes, int64_t c, int64_t pixels, size_t elem, void *image)
{
    for (int64_t i = 0; i < pixels; i++)
        for (int64_t k = 0; k < c; k++)
            memcpy((char *)image + (size_t)(i * c + k) * elem,
                   (const char *)planes + (size_t)(k * pixels + i) * elem, elem);
}
