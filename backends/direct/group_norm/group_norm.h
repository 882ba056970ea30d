/* group_norm.h - our own group norm (and so layer norm) and its gradients, on plain NHWC memory in
 * f32 and bf16. dx and the sums for gamma and beta are one pass where both are wanted.
 *
 * Where an image is one pixel - layer norm's rows - a group is contiguous and its loops run along
 * it (rows.c); else they run over the channels of a pixel, and sums of channels become those of
 * groups (image.c).
 *
 * Arithmetic is in float. The mean is a sum m / n that need not be exact, `shift`, and what the
 * second walk finds the mean of x - shift to be, `delta`: x - shift is nearly exact where the mean
 * is large, so that nothing cancels. Long sums are cut into pieces that are added in double. A
 * group whose squares float does not hold is computed in double (wide.h).
 *
 * A job is a segment of the rows, or whole groups of an image. Each writes its part of the sums for
 * gamma and beta; parts are added in order, and their number does not depend on the threads. */
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
    int x, gamma, beta, dy;  /* among group->in; -1: it is not read */
    int y, sums;             /* among group->out, y being dx of the gradient; -1: nobody wants it */
    ptrdiff_t chunks, chunk; /* of an image: how many, groups in one */
    ptrdiff_t parts;         /* of the sums: segments of rows, or images */
    size_t part;             /* in the scratch: [parts][2][channels] floats */
    size_t thread, per_thread, accumulated, total, column; /* and of each thread */
} group_norm;

typedef struct {
    float shift, delta, s; /* mean = shift + delta, s = 1 / sqrt(var + epsilon); 0: see wide.h */
} group_norm_stats;

/* Computes the statistics from the sums of x - shift and its square over m elements. Sets s to 0
 * outside 2^-30 .. 2^30: products in the gradients need that room, and an overflowed sum ends
 * there. */
static inline group_norm_stats group_norm_stats_of(float shift, double sum, double square, double m,
                                                   double epsilon)
{
    double delta = sum / m, var = square / m - delta * delta;
    var = var < 0 ? 0 : var; /* a NaN stays */
    const double s = 1 / sqrt(var + epsilon);
    const int is_plain = s >= 0x1p-30 && s <= 0x1p30;
    return (group_norm_stats){shift, (float)delta, is_plain ? (float)s : 0};
}

/* The end of every gradient: adds up the parts of the sums. */
void group_norm_add_parts(const adj_call *c);

#endif
