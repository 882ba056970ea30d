/* max_pool.h - our own max pooling and its gradient, on plain NHWC memory in f32 and bf16.
 *
 * Loops run over the channels of a pixel, which never mix. Results are those of naive: a NaN is the
 * maximum, and the first maximum in row-major order takes the gradient. max_pool_grad looks for it
 * again; where windows do not overlap, max_pool_argmax writes it down in the pass of max_pool, a
 * byte each (layouts.c), and max_pool_grad_argmax reads neither x nor y. A relu that alone reads
 * the pool's result is part of its pass.
 *
 * dy goes to dx in one of two ways. Windows that do not overlap are written one after the other,
 * each element of dx once. Those that do are added up in float in a ring of the rows that are still
 * to receive something, in the order of the windows; a row that is complete is rounded once.
 *
 * A job is a row of windows of an image, or, where they overlap, a chunk of channels of an image:
 * jobs write to different places, and each in an order that does not depend on the threads. */
#ifndef DIRECT_MAX_POOL_H
#define DIRECT_MAX_POOL_H

#include <stddef.h>

#include "backends/direct/direct.h"

enum { MAX_POOL_CHUNK = 64 }; /* channels that are kept in local arrays */

typedef struct max_pool_code {           /* for one type of elements */
    direct_code forward[2], backward[2]; /* [with the argmax] */
    direct_code backward_overlapping;
} max_pool_code;

typedef struct max_pool {
    direct_work work;
    adj_conv_geom g;
    float floor;      /* y is at least that: 0 for relu, else -infinity */
    int x, dy;        /* among group->in */
    int y;            /* among group->out; -1: nobody wants it */
    int argmax;       /* among group->out, or ->in for the gradient; -1: there is none */
    ptrdiff_t chunks; /* of the channels */
    ptrdiff_t slots;  /* rows of a ring */
    size_t ring;      /* bytes of one; each thread has its own */
} max_pool;

#endif
