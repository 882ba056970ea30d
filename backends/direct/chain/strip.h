/* strip.h - the chains that a training step spends its time in, each as one loop that keeps
 * everything in registers: what a chain's loops are for any chain, one node after the other over a
 * chunk, these are for a few whole ones.
 *
 * A strip goes along rows, WIDTH columns wide; what belongs to a column - constants, sums - is
 * loaded once. There are three forms:
 *
 *   y = relu(norm(x) + a)                                     RELU, ADD may be missing
 *   d = mask(a + b), or norm_grad(x, d); d's sums             all but one may be missing
 *   d = dy where norm(x) > 0; d's norm sums with x, or norm_grad(x, d) */
#ifndef DIRECT_CHAIN_STRIP_H
#define DIRECT_CHAIN_STRIP_H

#include "chain.h"

enum { STRIP_WIDTH = 64, STRIP_SUMS_MOST = 2 };

/* What a strip does, in this order. */
enum {
    STRIP_HALF = 1 << 0, /* operands and result are bf16, not f32 */
    STRIP_NORM = 1 << 1, /* of x[0] */
    STRIP_GRAD = 1 << 2, /* norm_grad of x[0] and dy x[1] or what there is */
    STRIP_ADD = 1 << 3,  /* x[0] or what there is, and x[1] */
    STRIP_RELU = 1 << 4,
    STRIP_MASK = 1 << 5, /* by x[2] > 0 */
    STRIP_OUT = 1 << 6,  /* written to y */
    STRIP_SUM = 1 << 7,
    STRIP_NORM_SUMS = 1 << 8,     /* with x[3] */
    STRIP_NORM_SUMS_TOO = 1 << 9, /* with x[4] */
    STRIP_STATS = 1 << 10,
    STRIP_NORM_MASK = 1 << 11 /* x[1] where norm(x[0]) > 0 */
};

enum { STRIP_IN = 5 };

/* The rows of a strip's loop, from where it starts. */
typedef struct chain_strip {
    ptrdiff_t rows, row, width; /* width: a multiple of STRIP_WIDTH */
    const void *x[STRIP_IN];
    void *y;
    const float *constant[5];           /* mean, scale; NORM, NORM_MASK: beta; GRAD: two more */
    const float *mean[STRIP_SUMS_MOST]; /* of NORM_SUMS; STATS: the shift */
    float *sum;                         /* SUM */
    float *first[STRIP_SUMS_MOST], *second[STRIP_SUMS_MOST]; /* sums of NORM_SUMS; STATS: moments */
} chain_strip;

typedef void chain_strip_loop(const chain_strip *s);

/* strip.c, per instruction set. NULL: there is no such loop. */
chain_strip_loop *direct_chain_strip_base(int what), *direct_chain_strip_avx2(int what),
    *direct_chain_strip_avx512(int what);

/* pattern.c: finds out whether p is a strip, and what it reads. */
void chain_find_strip(chain *p);

#endif
