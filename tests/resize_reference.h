/* resize_reference.h - resizing of NHWC images and its gradient by the definition in adjoint_ops.h:
 * products with a matrix of weights for each axis, in double. An NCHW image is one for each channel
 * here, of one channel. */
#ifndef TESTS_RESIZE_REFERENCE_H
#define TESTS_RESIZE_REFERENCE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/plan.h"

typedef struct {
    int64_t n, ih, iw, c, oh, ow;
} resize_sizes;

/* The weight of input i in output o: that of a hat of height 1 around o's position. */
static inline double resize_weight(const adj_sampling *s, int64_t in, int64_t out, int64_t o,
                                   int64_t i)
{
    int64_t num = 2 * o * in, den = 2 * out; /* the position */
    if (s->coordinates == ADJ_HALF_PIXEL)
        num = (2 * o + 1) * in - out;
    if (s->coordinates == ADJ_ALIGN_CORNERS) {
        num = 2 * o * (in - 1);
        den = out > 1 ? 2 * (out - 1) : 2;
    }
    if (s->mode == ADJ_BILINEAR) {
        num = num < 0 ? 0 : num > (in - 1) * den ? (in - 1) * den : num;
        return fmax(0, 1 - fabs((double)(num - i * den) / (double)den));
    }
    if (s->coordinates == ADJ_ASYMMETRIC)
        return i * den <= num && num < (i + 1) * den;
    return 2 * num >= (2 * i - 1) * den && 2 * num < (2 * i + 1) * den;
}

/* A matrix of an axis' weights, a row for each element of the result; malloc'ed. */
static inline double *resize_matrix(const adj_sampling *s, int64_t in, int64_t out, int is_grad)
{
    double *w = malloc((size_t)(in * out) * sizeof *w + 1);
    for (int64_t o = 0; o < out; o++)
        for (int64_t i = 0; i < in; i++)
            w[is_grad ? i * out + o : o * in + i] = resize_weight(s, in, out, o, i);
    return w;
}

/* One row of the result: y = the sum over the columns of what the rows of image x [h, w, c] are
 * summed to, and size the same of absolute values. line: memory for 2 w c numbers. */
static inline void resize_row(const double *x, int64_t h, int64_t w, int64_t c, int64_t columns,
                              const double *by_row, const double *by_column, double *line,
                              double *y, double *size)
{
    memset(line, 0, 2 * (size_t)(w * c) * sizeof *line);
    for (int64_t r = 0; r < h; r++)
        for (int64_t i = 0; by_row[r] != 0 && i < w * c; i++) {
            line[2 * i] += by_row[r] * x[r * w * c + i];
            line[2 * i + 1] += fabs(by_row[r] * x[r * w * c + i]);
        }
    for (int64_t j = 0; j < columns; j++)
        for (int64_t k = 0; k < w; k++)
            for (int64_t i = 0; by_column[j * w + k] != 0 && i < c; i++) {
                y[j * c + i] += by_column[j * w + k] * line[2 * (k * c + i)];
                size[j * c + i] += by_column[j * w + k] * line[2 * (k * c + i) + 1];
            }
}

/* The result for x, or of a gradient for dy, and the sums of absolute values that it is made of; to
 * be freed. */
typedef struct {
    double *y, *size;
} resized;

static inline resized resize_reference(const resize_sizes *z, const adj_sampling *s, int is_grad,
                                       const double *x)
{
    const int64_t h = is_grad ? z->oh : z->ih, w = is_grad ? z->ow : z->iw;
    const int64_t rows = is_grad ? z->ih : z->oh, columns = is_grad ? z->iw : z->ow;
    const size_t n = (size_t)(z->n * rows * columns * z->c) + 1;
    resized r = {calloc(n, sizeof *r.y), calloc(n, sizeof *r.size)};
    scoped(release) double *by_row = resize_matrix(s, z->ih, z->oh, is_grad),
                           *by_column = resize_matrix(s, z->iw, z->ow, is_grad),
                           *line = malloc(2 * (size_t)(w * z->c) * sizeof *line + 1);
    for (int64_t i = 0; i < z->n * rows; i++) {
        const int64_t at = i * columns * z->c;
        resize_row(x + i / rows * h * w * z->c, h, w, z->c, columns, by_row + i % rows * h,
                   by_column, line, r.y + at, r.size + at);
    }
    return r;
}

static inline void resized_free(resized *r) { free(r->y), free(r->size); }

#endif
