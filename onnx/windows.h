/* windows.h - windows of convolutions and pools along height and width. One spatial axis runs as
 * images of height 1. */
#ifndef ONNX_WINDOWS_H
#define ONNX_WINDOWS_H

#include "import.h"

typedef struct {
    int spatial;   /* number of spatial axes in the file: 1 or 2 */
    int64_t in[2]; /* size of the image */
    int64_t kernel[2], stride[2], dilation[2];
    int64_t pad[4]; /* top, left, bottom, right */
} windows;

/* Reads kernel_shape (from the filter's shape where it is missing), strides, dilations and pads. */
int read_windows(call *n, const adj_shape *filter, windows *w);
/* Number of elements from the first to the last one of a window. */
int64_t reach_of(const windows *w, int i);
/* x [n, c, w] as [n, c, 1, w]; images stay. */
adj_node *as_images(adj_node *x);
/* The reverse, for an operator of one spatial axis. */
adj_node *from_images(adj_node *y, int spatial);

#endif
