/* conv.h - helpers of kernels over images: strides, and blocks of channels that are summed in an
 * array of A on the stack. Include after kernels.h. */
#ifndef NAIVE_CONV_H
#define NAIVE_CONV_H

#include "kernels.h"

enum { BLOCK = 64, PARALLEL_ABOVE = 1 << 15 }; /* multiply-adds that justify several threads */

/* Element [n, h, w, c] of an image is n*n_stride + h*h_stride + w*w_stride + c*c_stride from its
 * start. */
typedef struct {
    ptrdiff_t n, h, w, c;
} strides;

static inline strides strides_of(int64_t format, int64_t h, int64_t w, int64_t c)
{
    if (format == ADJ_NCHW)
        return (strides){c * h * w, w, 1, h * w};
    return (strides){h * w * c, w * c, c, 1};
}

static inline ptrdiff_t at_most_block(ptrdiff_t left) { return left < BLOCK ? left : BLOCK; }

#endif
