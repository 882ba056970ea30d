/* conv.h - writes the windows of convolutions and pools in functions, and convolutions themselves.
 */
#ifndef EMIT_CONV_H
#define EMIT_CONV_H

#include "emit.h"

/* One axis of the windows: results, stride, taps, dilation, pad before, elements of the operand. */
typedef struct {
    int64_t outs, stride, taps, dilation, pad, in;
} window;
/* True if each channel has a filter of its own. */
int is_depthwise(const adj_conv_geom *g);
window window_h(const adj_conv_geom *g);
window window_w(const adj_conv_geom *g);

/* Bounds of the taps that lie inside the image, as expressions; is_whole: they are constant. */
typedef struct {
    expression from, to;
    int is_whole;
} span;
/* Declares the bounds TAP_from and TAP_to of result `out` where windows leave the image. */
span put_window(text *t, const char *tap, const char *out, window w);
/* Opens the loop over an axis of the window, unless there is one tap. Returns the braces. */
int put_taps(text *t, const char *tap, window w, const span *s);
/* Returns a bound, a variable or a number, times a factor. */
expression scaled(const expression *bound, int64_t factor);
/* Returns the position in the operand of a tap of a result, each a variable or "0":
 * "oh * 2 + kh - 1". */
expression window_at(const char *out, const char *tap, window w);

/* The loops over the pixels of the result; h and w: the bounds of their windows. */
typedef struct {
    int braces;
    span h, w;
} pixels;
pixels put_result_pixels(text *t, const adj_conv_geom *g);
/* Opens the loops over a window; returns their braces. *pixel: the index of the operand's channel
 * `first`. */
int put_window_loops(text *t, const adj_conv_geom *g, const pixels *p, const char *first,
                     expression *pixel);
/* Returns the index of a pixel's result `first`. */
expression result_at(const adj_conv_geom *g, const char *first);

/* ---- block.c ---- */

/* A convolution of operand 0 with the filter, operand 1; a matrix product is one of 1 x 1. */
typedef struct {
    adj_conv_geom geom;
    int64_t pixel, channel; /* distances in operand 0 of pixels, and of channels */
    /* Loop variables: pixels of a row, channels of operand 0 and of the result. */
    const char *variable, *inner, *lane;
} convolution;

/* Writes the body: sums and the stores of results. */
void put_convolution(function *f, const convolution *p);

#endif
