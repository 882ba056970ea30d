/* conv.h - helpers of the naive convolution kernels: strides of images, and the walk over taps.
 * Include after kernels.h.
 *
 * Every kernel computes one block of up to BLOCK results at a time in an array of A on the
 * stack; the inner loop runs over the block, so it vectorizes, and each result is one sequential
 * sum. */
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

typedef struct {
    adj_conv_geom k;
    strides in, out; /* strides of the images at the input's and the output's side */
} conv_call;

static inline conv_call conv_call_of(const adj_call *c)
{
    const adj_conv_attrs *a = c->group->node[0]->attrs;
    adj_conv_geom k = a->geom;
    return (conv_call){k, strides_of(k.format, k.ih, k.iw, k.ic),
                       strides_of(k.format, k.oh, k.ow, k.oc)};
}

/* Returns the input position of output position i and filter position j; negative if out of
 * bounds. */
static inline ptrdiff_t input_at(ptrdiff_t i, ptrdiff_t stride, ptrdiff_t j, ptrdiff_t dilation,
                                 ptrdiff_t pad, ptrdiff_t size)
{
    ptrdiff_t p = i * stride + j * dilation - pad;
    return p < size ? p : -1;
}

/* Returns the output position from which filter position j reaches input position p; negative if
 * there is none. */
static inline ptrdiff_t output_at(ptrdiff_t p, ptrdiff_t stride, ptrdiff_t j, ptrdiff_t dilation,
                                  ptrdiff_t pad, ptrdiff_t size)
{
    ptrdiff_t t = p + pad - j * dilation;
    return t >= 0 && t % stride == 0 && t / stride < size ? t / stride : -1;
}

/* Outputs that are summed side by side, a block at a time: those of a group; or, if a group has
 * one input channel (depthwise), the same output of every group. Each sum has the same order.
 * Output i of set s is s * set + i * step, and its group's first channel is s * c_set + i *
 * c_step. */
typedef struct {
    ptrdiff_t sets, n, set, step, c_set, c_step;
} lanes;

static inline lanes lanes_of(const adj_conv_geom *k)
{
    ptrdiff_t of_group = k->oc / k->groups, channels = k->ic / k->groups;
    if (channels == 1 && k->groups > 1)
        return (lanes){of_group, k->groups, 1, of_group, 0, 1};
    return (lanes){k->groups, of_group, of_group, 1, channels, 0};
}

/* Adds a * b[i * step] to sum[i]. */
static inline void add_scaled(A sum[BLOCK], A a, const T *b, ptrdiff_t step, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++)
        sum[i] += a * ld(b + i * step);
}

/* Adds a[i * a_step] * b[i * b_step] to sum[i]. */
static inline void add_products(A sum[BLOCK], const T *a, ptrdiff_t a_step, const T *b,
                                ptrdiff_t b_step, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++)
        sum[i] += ld(a + i * a_step) * ld(b + i * b_step);
}

/* Returns the images to walk over: none if the output is empty, however large its other sizes. */
static inline ptrdiff_t images_of(const adj_conv_geom *k)
{
    return k->oh > 0 && k->ow > 0 ? k->n : 0;
}

static inline ptrdiff_t at_most_block(ptrdiff_t left) { return left < BLOCK ? left : BLOCK; }

#endif
