/* conv_geom.h - computes the geometry of a convolution or pool from shapes and attributes, with
 * every size rule of TensorFlow's contract, in checked 64-bit arithmetic. */
#ifndef CONV_GEOM_H
#define CONV_GEOM_H

#include "attr_lists.h"
#include "graph/op.h"

/* One spatial dimension. Requires in >= 0; k, stride, dilation >= 1. */
typedef struct {
    int64_t in, k, stride, dilation;
    int64_t before, after; /* pads: given if EXPLICIT, else filled in */
    int64_t out;           /* filled in; may be 0 */
} window;

/* SAME:             out = ceil(in / stride), the pads share max((out-1)*stride + k_eff - in, 0),
 *                   the odd one behind
 * VALID, EXPLICIT:  out = (in + before + after - k_eff + stride) / stride, truncated as C does
 * with k_eff = (k-1)*dilation + 1. Returns NULL, or the error: "is negative", "is too large". */
const char *window_resolve(window *v, adj_padding padding);

/* Returns the window along one axis of an image with these attributes, for window_resolve. */
window window_along(int axis, int64_t in, int64_t k, const int64_t stride[4],
                    const int64_t dilation[4], int64_t (*pad)[2]);
void geom_set_windows(adj_conv_geom *k, const window *h, const window *w);
/* Prints padding, windows and format; kc: the channels of a pool's window, 0 for a convolution. */
void show_windows(adj_padding padding, const adj_conv_geom *k, int64_t kc, FILE *f);

/* The sizes that the geometry of the six convolutions is computed from, and TensorFlow's names
 * for them in this op. */
typedef struct {
    adj_graph *g;
    const char *op, *image_name, *filter_name;
    int depthwise;
    int may_be_empty; /* the filter's last dimension may be 0 */
    adj_conv_geom k;  /* sizes of the image, and kh and kw */
    int64_t in, last; /* the filter's other sizes: [kh, kw, in, out or multiplier] */
} conv_sizes;

/* Sets the image's sizes from an operand's shape, which must have rank 4. */
adj_status conv_set_image(conv_sizes *s, adj_shape image, adj_format format);
adj_status conv_set_filter(conv_sizes *s, adj_shape filter);
/* Checks all sizes and fills in a->conv's defaults and a->geom. */
adj_status conv_resolve(const conv_sizes *s, adj_conv_attrs *a);
/* Checks that dy has exactly the result's shape in that geometry. */
adj_status conv_check_out(const conv_sizes *s, const adj_conv_geom *k, adj_shape dy,
                          const char *name);

adj_shape conv_input_shape(const adj_conv_geom *k);
adj_shape conv_output_shape(const adj_conv_geom *k);
/* Schema of adj_conv_attrs; printed as " SAME s2x2 d2x1 g2 NCHW". */
extern const adj_schema conv_schema;

/* ---- pools (pool_geom.c) ---- */

/* Sets n, ih, iw and ic of a->geom from the shape of a pool's input, or from a given input
 * shape. */
adj_status pool_set_input(const adj_node *n, const char *name, adj_shape shape, adj_pool_attrs *a);
/* The rules that apply: only max pooling may have a window over channels or EXPLICIT padding.
 * Only the gradient of average pooling may have no window that fits: dy is then empty and the
 * gradient is zeros, as in TensorFlow. */
typedef enum { POOL_MAX, POOL_AVERAGE, POOL_AVERAGE_GRAD } pool_kind;
/* Checks a->pool, fills in its defaults and the rest of a->geom. */
adj_status pool_resolve(const adj_node *n, pool_kind kind, adj_pool_attrs *a);
/* Schema of adj_pool_attrs; printed as " SAME k3x3 s2x2 NCHW". */
extern const adj_schema pool_schema;

#endif
