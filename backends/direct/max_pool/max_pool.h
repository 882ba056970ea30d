/* max_pool.h - max pooling and its gradient, on plain NHWC memory in f32 and bf16.
 *
 * Loops run over the channels of a pixel, which are independent. Results are those of naive: a
 * NaN is the maximum, and the first maximum in row-major order receives the gradient.
 * max_pool_grad searches for it again. If windows do not overlap, max_pool_argmax stores its
 * position in the pass of max_pool, a byte each (direct.c), and max_pool_grad_argmax reads
 * neither x nor y. A relu that is the pool's only user is fused into its pass.
 *
 * With an argmax the gradient writes one window after the other, each element of dx once. Without
 * one, windows may overlap: they are added in float, in the order of the windows, in a ring of the
 * rows that later windows still reach; a complete row is rounded once.
 *
 * A job is a row of windows of an image, or, without an argmax, a chunk of channels of an image.
 * Jobs write to disjoint memory, each in an order that does not depend on the threads. */
#ifndef DIRECT_MAX_POOL_H
#define DIRECT_MAX_POOL_H

#include <stddef.h>

#include "backends/direct/direct.h"

enum { MAX_POOL_CHUNK = 64 }; /* channels in local arrays */

typedef struct max_pool_code {           /* for one type of elements */
    direct_code forward[2], backward[2]; /* [with the argmax] */
} max_pool_code;

typedef struct max_pool {
    direct_work work;
    adj_conv_geom g;
    float floor; /* lower bound of y: 0 for relu, else -infinity */
    int x, dy;   /* indices in group->in */
    int y;       /* index in group->out; -1 if not needed */
    int argmax;  /* index in group->out, or in group->in for the gradient; -1 if there is none */
    ptrdiff_t chunks; /* chunks of the channels */
    ptrdiff_t slots;  /* rows of a ring */
    size_t ring;      /* bytes of a ring; each thread has its own */
} max_pool;

#endif
