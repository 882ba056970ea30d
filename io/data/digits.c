/* digits.c - the data set that needs no file: 28x28 digits, drawn.
 *
 * A digit is one of several skeletons (the table below): strokes through control points, smooth
 * (Catmull-Rom) or straight. An image is a skeleton whose points are jittered and bent by a random
 * displacement field, then rotated, sheared, scaled and shifted, drawn with a round pen of random
 * width and ink, with a scratch across some and noise over all. Every number comes from
 * io_mix(key(seed, part, i) + k), and only + - * / and sqrt are used, which IEEE 754 rounds
 * exactly: the same images on every machine and for any number of threads. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"

/* ---- skeletons ----
 *
 * There are several of each digit, on a square of 100 x 100 (x to the right, y down). A list of
 * points ends at 0, 0; so does a list of strokes or variants. */

enum { GLYPH_POINTS = 12, GLYPH_STROKES = 3, GLYPH_VARIANTS = 5 };

typedef struct {
    int smooth;                  /* a spline through the points; 0: straight lines */
    int8_t at[2 * GLYPH_POINTS]; /* x, y of each point */
} stroke;

static const stroke glyphs[10][GLYPH_VARIANTS][GLYPH_STROKES] = {
    /* 0 */
    {{{1, {50, 3, 22, 14, 12, 50, 22, 86, 50, 97, 78, 86, 88, 50, 78, 14, 50, 3}}},
     {{1, {55, 4, 34, 12, 28, 50, 34, 88, 52, 96, 68, 86, 73, 50, 67, 14, 48, 4}}},
     {{1, {66, 8, 36, 8, 14, 40, 18, 82, 48, 97, 82, 76, 86, 34, 64, 6, 40, 14}}}},
    /* 1 */
    {{{0, {50, 3, 50, 97}}},
     {{0, {30, 26, 54, 4, 54, 97}}},
     {{0, {32, 22, 52, 5, 52, 95}}, {0, {28, 96, 76, 96}}},
     {{1, {56, 3, 52, 34, 49, 66, 48, 97}}}},
    /* 2 */
    {{{1, {15, 26, 28, 7, 56, 4, 78, 20, 72, 46, 44, 72, 14, 95}}, {0, {14, 95, 88, 95}}},
     {{1, {18, 22, 40, 4, 72, 12, 74, 40, 50, 68, 22, 90, 16, 78, 34, 74, 58, 90, 88, 92}}},
     {{0, {16, 8, 80, 8, 16, 94, 86, 94}}},
     {{1, {22, 30, 34, 8, 64, 5, 80, 28, 62, 58, 20, 94}}, {1, {20, 94, 50, 88, 86, 96}}}},
    /* 3 */
    {{{1, {16, 16, 40, 3, 70, 10, 74, 32, 42, 47}}, {1, {42, 47, 78, 58, 80, 82, 50, 97, 14, 86}}},
     {{0, {18, 6, 80, 6, 44, 42}}, {1, {44, 42, 78, 52, 82, 80, 52, 97, 14, 86}}},
     {{1, {20, 10, 56, 4, 76, 22, 52, 46, 40, 48, 56, 48, 82, 66, 66, 94, 18, 92}}}},
    /* 4 */
    {{{0, {64, 97, 64, 4, 12, 66, 90, 66}}},
     {{0, {24, 4, 18, 52, 84, 52}}, {0, {70, 8, 68, 97}}},
     {{1, {22, 6, 18, 34, 24, 54, 50, 57, 76, 50}}, {1, {78, 4, 74, 50, 70, 97}}},
     {{0, {46, 4, 14, 60, 86, 58}}, {0, {62, 34, 58, 97}}}},
    /* 5 */
    {{{0, {80, 5, 28, 5, 22, 46}}, {1, {22, 46, 54, 38, 82, 58, 74, 88, 44, 97, 14, 86}}},
     {{0, {30, 6, 24, 44}}, {1, {24, 44, 60, 42, 80, 66, 62, 94, 18, 92}}, {0, {30, 6, 84, 5}}},
     {{1, {82, 6, 48, 6, 26, 16, 30, 42, 62, 52, 78, 74, 54, 96, 16, 90}}}},
    /* 6 */
    {{{1, {72, 5, 40, 20, 18, 58, 26, 90, 56, 97, 80, 80, 72, 56, 46, 52, 22, 72}}},
     {{1, {54, 3, 32, 34, 20, 70, 40, 96, 70, 90, 76, 66, 52, 56, 26, 70}}},
     {{1, {80, 12, 54, 6, 26, 30, 16, 66, 36, 94, 70, 92, 82, 68, 58, 52, 22, 64}}}},
    /* 7 */
    {{{0, {12, 7, 86, 7, 40, 97}}},
     {{0, {14, 7, 84, 7, 42, 97}}, {0, {34, 52, 80, 52}}},
     {{1, {14, 14, 40, 8, 82, 8, 72, 34, 52, 62, 46, 97}}},
     {{0, {16, 24, 16, 7, 84, 7, 56, 48, 44, 97}}}},
    /* 8 */
    {{{1, {50, 47, 24, 36, 26, 12, 50, 3, 74, 12, 76, 36, 50, 47}},
      {1, {50, 47, 20, 62, 20, 86, 50, 97, 80, 86, 80, 62, 50, 47}}},
     {{1, {76, 14, 48, 3, 24, 20, 38, 42, 66, 58, 78, 80, 50, 97, 22, 82, 36, 58, 66, 38, 76, 14}}},
     {{1, {68, 8, 36, 6, 26, 26, 52, 46, 72, 70, 60, 94, 32, 94, 26, 72, 50, 48, 72, 28, 66, 6}}}},
    /* 9 */
    {{{1, {78, 30, 62, 6, 30, 8, 18, 32, 36, 54, 64, 50, 78, 28}}, {0, {78, 28, 70, 97}}},
     {{1, {74, 20, 46, 4, 20, 22, 26, 48, 56, 52, 76, 26, 80, 46, 72, 80, 46, 97, 20, 88}}},
     {{1, {76, 24, 52, 3, 24, 18, 24, 44, 52, 52, 74, 30}}, {1, {76, 10, 74, 54, 54, 97}}}},
};

/* ---- images ---- */

enum { SIDE = 28, PIXELS = SIDE * SIDE, STEPS = 8, FIELD = 4 };

typedef struct {
    uint64_t key, used;
} source;

typedef struct {
    double x, y;
} point;

/* Random parameters of one image. */
typedef struct {
    point bend[FIELD][FIELD]; /* displacements on a grid over the unit square */
    double xx, xy, yx, yy;    /* the linear map */
    point shift;
    double radius, ink; /* radius and ink of the pen */
} style;

/* [lo, hi) */
static double uniform_between(source *r, double lo, double hi)
{
    return lo + (hi - lo) * io_unit(io_mix(r->key + r->used++));
}

/* Nearly normal, mean 0, deviation 1: the sum of four uniform draws. */
static double bell(source *r)
{
    double sum = 0;
    for (int i = 0; i < 4; i++)
        sum += uniform_between(r, -1, 1);
    return sum * 0.8660254037844386; /* sqrt(3/4) */
}

static style draw_style(source *r)
{
    style s;
    for (int i = 0; i < FIELD * FIELD; i++)
        s.bend[i / FIELD][i % FIELD] = (point){0.035 * bell(r), 0.035 * bell(r)};

    /* tan of half the angle gives sine and cosine by division */
    double t = 0.09 * bell(r), cosine = (1 - t * t) / (1 + t * t), sine = 2 * t / (1 + t * t);
    double shear = 0.22 * bell(r) - 0.1, size = uniform_between(r, 15, 21);
    double wide = size * uniform_between(r, 0.62, 1.0), high = size;
    /* rotate(shear(scale(p))) */
    s.xx = wide * cosine;
    s.xy = high * (cosine * shear - sine);
    s.yx = wide * sine;
    s.yy = high * (sine * shear + cosine);
    s.shift = (point){SIDE / 2.0 + 1.1 * bell(r), SIDE / 2.0 + 1.1 * bell(r)};
    s.radius = uniform_between(r, 0.7, 1.9);
    s.ink = uniform_between(r, 0.75, 1.0);
    return s;
}

/* The displacement at p, bilinear between the grid's points. */
static point bend_at(const style *s, point p)
{
    double fx = fmin(fmax(p.x, 0), 0.999) * (FIELD - 1),
           fy = fmin(fmax(p.y, 0), 0.999) * (FIELD - 1);
    int i = (int)fx, j = (int)fy;
    fx -= i;
    fy -= j;
    const point *a = &s->bend[j][i], *b = &s->bend[j + 1][i];
    return (point){
        (1 - fy) * ((1 - fx) * a[0].x + fx * a[1].x) + fy * ((1 - fx) * b[0].x + fx * b[1].x),
        (1 - fy) * ((1 - fx) * a[0].y + fx * a[1].y) + fy * ((1 - fx) * b[0].y + fx * b[1].y)};
}

/* Maps a point of the unit square to pixels. */
static point place(const style *s, point p)
{
    point d = bend_at(s, p);
    double x = p.x + d.x - 0.5, y = p.y + d.y - 0.5;
    return (point){s->xx * x + s->xy * y + s->shift.x, s->yx * x + s->yy * y + s->shift.y};
}

/* A segment with a round pen: coverage falls from 1 to 0 over one pixel at the edge, and a pixel
 * keeps the largest ink. */
static void draw_segment(double image[PIXELS], point a, point b, double radius, double ink)
{
    double reach = radius + 0.5, dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy;
    int x0 = (int)fmax(floor(fmin(a.x, b.x) - reach), 0);
    int x1 = (int)fmin(ceil(fmax(a.x, b.x) + reach), SIDE - 1);
    int y0 = (int)fmax(floor(fmin(a.y, b.y) - reach), 0);
    int y1 = (int)fmin(ceil(fmax(a.y, b.y) + reach), SIDE - 1);

    for (int y = y0; y <= y1; y++)
        for (int x = x0; x <= x1; x++) {
            double px = x + 0.5 - a.x, py = y + 0.5 - a.y;
            double along = length > 0 ? (px * dx + py * dy) / length : 0;
            along = fmin(fmax(along, 0), 1);
            px -= along * dx;
            py -= along * dy;
            double cover = fmin(fmax(reach - sqrt(px * px + py * py), 0), 1);
            image[y * SIDE + x] = fmax(image[y * SIDE + x], ink * cover);
        }
}

/* The Catmull-Rom spline through b and c, with neighbors a and d, at t. */
static point spline(point a, point b, point c, point d, double t)
{
    double p = ((-t + 2) * t - 1) * t / 2, q = ((3 * t - 5) * t * t + 2) / 2;
    double u = ((-3 * t + 4) * t + 1) * t / 2, v = (t - 1) * t * t / 2;
    return (point){p * a.x + q * b.x + u * c.x + v * d.x, p * a.y + q * b.y + u * c.y + v * d.y};
}

static void draw_stroke(double image[PIXELS], const stroke *k, const style *s, source *r)
{
    point p[GLYPH_POINTS];
    int n = 0;

    for (const int8_t *at = k->at; n < GLYPH_POINTS && (at[0] != 0 || at[1] != 0); n++, at += 2)
        p[n] = (point){at[0] / 100.0 + 0.025 * bell(r), at[1] / 100.0 + 0.025 * bell(r)};
    for (int i = 0; i + 1 < n; i++) {
        point before = p[i > 0 ? i - 1 : i], after = p[i + 2 < n ? i + 2 : i + 1];
        int steps = k->smooth ? STEPS : 3;
        point from = place(s, p[i]);
        for (int j = 1; j <= steps; j++) {
            double t = (double)j / steps;
            point on = k->smooth ? spline(before, p[i], p[i + 1], after, t)
                                 : (point){p[i].x + t * (p[i + 1].x - p[i].x),
                                           p[i].y + t * (p[i + 1].y - p[i].y)};
            point to = place(s, on);
            draw_segment(image, from, to, s->radius, s->ink);
            from = to;
        }
    }
}

static void draw_digit(uint8_t pixels[PIXELS], int digit, source *r)
{
    double image[PIXELS] = {0};
    style s = draw_style(r);
    int variants = 0;

    while (variants < GLYPH_VARIANTS && glyphs[digit][variants][0].at[0] != 0)
        variants++;
    const stroke *g = glyphs[digit][(int)uniform_between(r, 0, variants)];
    for (int i = 0; i < GLYPH_STROKES && g[i].at[0] != 0; i++)
        draw_stroke(image, &g[i], &s, r);

    if (uniform_between(r, 0, 1) < 0.25) { /* a faint scratch */
        point a = {uniform_between(r, 0, SIDE), uniform_between(r, 0, SIDE)};
        point b = {a.x + 5 * bell(r), a.y + 5 * bell(r)};
        draw_segment(image, a, b, 0.5, uniform_between(r, 0.3, 0.8));
    }
    double noise = uniform_between(r, 0, 0.16);
    for (int i = 0; i < PIXELS; i++) {
        double v = image[i] + noise * bell(r);
        pixels[i] = (uint8_t)(fmin(fmax(v, 0), 1) * 255 + 0.5);
    }
}

adj_status io_digits_read(dataset *d, adj_dataset_part part, int64_t n, uint64_t seed)
{
    static const char *const names[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    if ((part != ADJ_TRAIN && part != ADJ_TEST) || n < 0 || n > INT32_MAX)
        return io_dataset_fail(d, ADJ_EARG,
                               "digits: unknown split, or number of images out of range (got %lld)",
                               (long long)n);
    if (n == 0)
        n = part == ADJ_TRAIN ? 8000 : 2000;
    d->images = malloc((size_t)n * PIXELS);
    d->labels = malloc((size_t)n * sizeof *d->labels);
    if (d->images == NULL || d->labels == NULL)
        return io_dataset_fail(d, ADJ_ENOMEM, "digits: out of memory");
    if (io_dataset_copy_names(d, names, 10) != ADJ_OK)
        return ADJ_ENOMEM;

#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++) {
        source r = {io_key(seed, (uint64_t)part, (uint64_t)i), 0};
        d->labels[i] = (int32_t)(i % 10); /* balanced; training shuffles */
        draw_digit(d->images + i * PIXELS, d->labels[i], &r);
    }
    d->public.n = n;
    d->stored = (adj_image_size){SIDE, SIDE, 1};
    io_dataset_set_moments(d, DIGIT_MEAN, DIGIT_DEVIATION);
    return ADJ_OK;
}

adj_status adj_dataset_digits(adj_dataset_part part, int64_t n, uint64_t seed, adj_dataset **out)
{
    dataset *d;
    adj_status status = io_dataset_new(out, &d);
    if (status == ADJ_OK)
        status = io_digits_read(d, part, n, seed);
    return status == ADJ_OK ? io_dataset_finish(d, "digits", part, NULL) : status;
}
