/* conv.h - writes the windows of convolutions and pools in functions. */
#ifndef EMIT_CONV_H
#define EMIT_CONV_H

#include "text.h"

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
span put_window(text *t, const char *tap, const char *out, const window *w);
/* Opens the loop over an axis of the window, unless there is one tap. Returns the braces. */
int put_taps(text *t, const char *tap, const window *w, const span *s);
/* Returns a bound, a variable or a number, times a factor. */
expression scaled(const expression *bound, int64_t factor);
/* Returns the position in the operand: "oh * 2 + kh - 1". */
expression window_at(const char *out, int64_t outs, int64_t stride, const char *tap, int64_t taps,
                     int64_t dilation, int64_t pad);

#endif
