/* group_norm.h - group norm (and so layer norm) and its gradients, on plain NHWC memory in f32
 * and bf16. dx and the sums for gamma and beta are one pass if both are needed.
 *
 * If an image is one pixel, as in layer norm, a group is contiguous and loops run along it
 * (rows.c). Otherwise loops run over the channels of a pixel, and sums of channels are added to
 * sums of groups (image.c).
 *
 * Arithmetic is in float. The mean is the sum of `shift`, an approximate mean from a first pass,
 * and `delta`, the mean of x - shift from a second pass. x - shift is nearly exact if the mean
 * is large, so that nothing cancels. Long sums are cut into pieces that are added in double. A
 * group whose squares overflow float is computed in double (wide.h).
 *
 * A job is a segment of the rows, or whole groups of an image. Each writes partial sums for
 * gamma and beta; they are added in order, and their number does not depend on the threads. */
#ifndef DIRECT_GROUP_NORM_H
#define DIRECT_GROUP_NORM_H

#include <math.h>

#include "backends/direct/direct.h"

typedef struct group_norm_code { /* for one type of elements */
    direct_code forward, backward;
} group_norm_code;

typedef struct group_norm {
    direct_work work;
    ptrdiff_t n, pixels, channels; /* x is [n, pixels, channels] */
    ptrdiff_t groups, rest;        /* channels = groups * rest */
    double epsilon;
    int x, gamma, beta, dy; /* indices in group->in; -1 if not read */
    int y, sums; /* indices in group->out, y being dx of the gradient; -1 if not needed */
    ptrdiff_t chunks, chunk; /* chunks of an image; groups in a chunk */
    ptrdiff_t partials;      /* partial sums: one for each segment of rows, or for each image */
    size_t partial;          /* offset in the scratch: [partials][2][channels] floats */
    size_t thread, per_thread, accumulated, total, column; /* first thread's; size; offsets in it */
} group_norm;

typedef struct {
    float shift, delta, s; /* mean = shift + delta, s = 1 / sqrt(var + epsilon) or 0: wide.h */
} group_norm_stats;

/* Computes the statistics from the sums of x - shift and its square over m elements. Sets s to 0
 * outside 2^-30 .. 2^30: products in the gradients need that margin. An overflowed sum has s ==
 * 0 as well. */
static inline group_norm_stats group_norm_stats_of(float shift, double sum, double square, double m,
                                                   double epsilon)
{
    double delta = sum / m, var = square / m - delta * delta;
    var = var < 0 ? 0 : var; /* NaN stays NaN */
    const double s = 1 / sqrt(var + epsilon);
    const int is_plain = s >= 0x1p-30 && s <= 0x1p30;
    return (group_norm_stats){shift, (float)delta, is_plain ? (float)s : 0};
}

/* Ends every gradient: adds the partial sums. */
void group_norm_add_partials(const adj_call *c, ptrdiff_t job);

#endif
