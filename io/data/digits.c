/* digits.c - the data set that needs no file: 28x28 digits, drawn.
 *
 * A digit is one of several skeletons (glyphs.h): strokes through control points, smooth
 * (Catmull-Rom) or straight. An image is a skeleton whose points are jittered and bent by a random
 * displacement field, then rotated, sheared, scaled and shifted, drawn with a round pen of random
 * width and ink, with a scratch across some and noise over all. Every number comes from
 * io_mix(key(seed, part, i) + k), and only + - * / and sqrt are used, which IEEE 754 rounds
 * exactly: the same images on every machine and for any number of threads. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "glyphs.h"
#include "layouts.h"

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
    double radius, ink; /* of the pen */
} style;

/* [lo, hi) */
static double uniform(source *r, double lo, double hi)
{
    return lo + (hi - lo) * io_unit(io_mix(r->key + r->used++));
}

/* Nearly normal, mean 0, deviation 1: the sum of four uniform draws. */
static double bell(source *r)
{
    double sum = 0;
    for (int i = 0; i < 4; i++)
        sum += uniform(r, -1, 1);
    return sum * 0.8660254037844386; /* sqrt(3/4) */
}

static style draw_style(source *r)
{
    style s;
    for (int i = 0; i < FIELD * FIELD; i++)
        s.bend[i / FIELD][i % FIELD] = (point){0.035 * bell(r), 0.035 * bell(r)};

    /* tan of half the angle gives sine and cosine by division */
    double t = 0.09 * bell(r), cosine = (1 - t * t) / (1 + t * t), sine = 2 * t / (1 + t * t);
    double shear = 0.22 * bell(r) - 0.1, size = uniform(r, 15, 21);
    double wide = size * uniform(r, 0.62, 1.0), high = size;
    /* rotate(shear(scale(p))) */
    s.xx = wide * cosine;
    s.xy = high * (cosine * shear - sine);
    s.yx = wide * sine;
    s.yy = high * (sine * shear + cosine);
    s.shift = (point){SIDE / 2.0 + 1.1 * bell(r), SIDE / 2.0 + 1.1 * bell(r)};
    s.radius = uniform(r, 0.7, 1.9);
    s.ink = uniform(r, 0.75, 1.0);
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

    for (; n < GLYPH_POINTS && (k->at[n][0] != 0 || k->at[n][1] != 0); n++)
        p[n] =
            (point){k->at[n][0] / 100.0 + 0.025 * bell(r), k->at[n][1] / 100.0 + 0.025 * bell(r)};
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

    while (variants < GLYPH_VARIANTS && glyphs[digit][variants].stroke[0].at[0][0] != 0)
        variants++;
    const glyph *g = &glyphs[digit][(int)uniform(r, 0, variants)];
    for (int i = 0; i < GLYPH_STROKES && g->stroke[i].at[0][0] != 0; i++)
        draw_stroke(image, &g->stroke[i], &s, r);

    if (uniform(r, 0, 1) < 0.25) { /* a faint scratch */
        point a = {uniform(r, 0, SIDE), uniform(r, 0, SIDE)};
        point b = {a.x + 5 * bell(r), a.y + 5 * bell(r)};
        draw_segment(image, a, b, 0.5, uniform(r, 0.3, 0.8));
    }
    double noise = uniform(r, 0, 0.16);
    for (int i = 0; i < PIXELS; i++) {
        double v = image[i] + noise * bell(r);
        pixels[i] = (uint8_t)(fmin(fmax(v, 0), 1) * 255 + 0.5);
    }
}

adj_status io_digits_read(dataset *d, adj_dataset_part part, int64_t n, uint64_t seed)
{
    static const char names[] = "0\0001\0002\0003\0004\0005\0006\0007\0008\0009";
    if ((part != ADJ_TRAIN && part != ADJ_TEST) || n < 0 || n > INT32_MAX)
        return io_dataset_fail(d, ADJ_EARG,
                               "digits: unknown split, or number of images out of range (got %lld)",
                               (long long)n);
    if (n == 0)
        n = part == ADJ_TRAIN ? 8000 : 2000;
    d->images = malloc((size_t)n * PIXELS);
    d->labels = malloc((size_t)n * sizeof *d->labels);
    char *text = malloc(sizeof names);
    if (d->images == NULL || d->labels == NULL || text == NULL) {
        free(text);
        return io_dataset_fail(d, ADJ_ENOMEM, "digits: out of memory");
    }
    memcpy(text, names, sizeof names);
    if (io_dataset_set_names(d, text, 10) != ADJ_OK)
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
