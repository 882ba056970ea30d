/* windows.h - windows of convolutions and pools along depth, height and width (conv.c). One spatial
 * axis is the width, two are height and width. */
#ifndef ONNX_WINDOWS_H
#define ONNX_WINDOWS_H

#include "import.h"

typedef struct {
    int spatial;   /* number of spatial axes in the file: 1 to 3; the others have size 1 */
    int64_t in[3]; /* sizes of depth, height, width */
    int64_t kernel[3], stride[3], dilation[3];
    int64_t pad[6];     /* front, top, left, back, bottom, right */
    int64_t counted[6]; /* padding whose elements an average counts */
} windows;

/* Reads kernel_shape (or the filter's, if it is not NULL), strides, dilations and pads. Sizes are
 * below 2^31, so that sums and products of two of them fit. Returns 0 having refused the node. */
int read_windows(call *n, const adj_shape *filter, windows *w);
/* Reads a list with an entry of at least `least` for each spatial axis; to[] keeps its values
 * without the attribute. Returns 0 having refused the node. */
int read_list(call *n, const char *name, int spatial, int64_t least, int64_t to[3]);
/* Number of elements from the first to the last one of a window. */
int64_t reach_of(const windows *w, int i);
/* Number of results along an axis. */
int64_t results_along(const windows *w, int i);
/* Sets the pads of height and width, in NCHW; returns how to pad. */
adj_padding padding_of(const windows *w, int64_t pad[4][2]);
/* The windows along the depth alone, as ones along the height. */
windows along_depth(const windows *w);
/* x [n, c, w] as [n, c, 1, w], and x [n, c, d, h, w] as [n, c d, h, w]; images stay. */
adj_node *as_images(adj_node *x);
/* The reverse, for an operator of one or two spatial axes. */
adj_node *from_images(adj_node *y, int spatial);

#endif
