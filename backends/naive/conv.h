/* conv.h - what the naive convolution kernels share: where the elements of an image are, and the
 * walk over its taps. Include after kernels.h.
 *
 * Every kernel computes one block of up to BLOCK results at a time in an array of A on the stack;
 * the inner loop runs over the block, so it vectorises, and each result is one sequential sum. */
#ifndef NAIVE_CONV_H
#define NAIVE_CONV_H

#include "kernels.h"

enum { BLOCK = 64, PARALLEL_ABOVE = 1 << 15 }; /* multiply-adds worth waking other threads for */

/* Element [n, h, w, c] of an image is n*n_step + h*h_step + w*w_step + c*c_step from its start. */
typedef struct {
    ptrdiff_t n, h, w, c;
} steps;

static inline steps steps_of(int64_t format, int64_t h, int64_t w, int64_t c)
{
    if (format == ADJ_NCHW)
        return (steps){c * h * w, w, 1, h * w};
    return (steps){h * w * c, w * c, c, 1};
}

typedef struct {
    adj_conv_geom k;
    steps in, out; /* of the images at the input's and the output's side */
} conv_call;

static inline conv_call conv_call_of(const adj_call *c)
{
    const adj_conv_attrs *a = c->group->node[0]->attrs;
    adj_conv_geom k = a->geom;
    return (conv_call){k, steps_of(k.format, k.ih, k.iw, k.ic),
                       steps_of(k.format, k.oh, k.ow, k.oc)};
}

/* Position in the input of output position i and filter position j; < 0: there is none. */
static inline ptrdiff_t input_at(ptrdiff_t i, ptrdiff_t stride, ptrdiff_t j, ptrdiff_t dilation,
                                 ptrdiff_t pad, ptrdiff_t size)
{
    ptrdiff_t p = i * stride + j * dilation - pad;
    return p < size ? p : -1;
}

/* The inverse: position in the output from which filter position j reaches input position p; < 0:
 * there is none. */
static inline ptrdiff_t output_at(ptrdiff_t p, ptrdiff_t stride, ptrdiff_t j, ptrdiff_t dilation,
                                  ptrdiff_t pad, ptrdiff_t size)
{
    ptrdiff_t t = p + pad - j * dilation;
    return t >= 0 && t % stride == 0 && t / stride < size ? t / stride : -1;
}

/* Images to walk over: none if the output is empty, however large its other sizes are. */
static inline ptrdiff_t images_of(const adj_conv_geom *k)
{
    return k->oh > 0 && k->ow > 0 ? k->n : 0;
}

static inline ptrdiff_t at_most_block(ptrdiff_t left) { return left < BLOCK ? left : BLOCK; }

#endif
