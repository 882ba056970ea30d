/* attr_lists.h - TensorFlow's attributes of convolutions and pools (strides, dilations, padding,
 * explicit_paddings, data_format): reading them from lists and words, and the rules that need no
 * shapes.
 *
 * Sentences are without the op's name: "strides must have 4 entries (got 5)". */
#ifndef ATTR_LISTS_H
#define ATTR_LISTS_H

#include "adjoint.h"

/* Where the dimensions of an image are in a shape of that format. */
typedef struct {
    int n, h, w, c;
} image_axes;
image_axes axes_of(adj_format format);
/* Lists of the other format, two of steps and the pads, in the order of this one. */
void attr_move_axes(adj_format to, int64_t a[4], int64_t b[4], int64_t pad[4][2]);
const char *padding_word(adj_padding padding);

/* What lists and words are read into. */
typedef struct {
    adj_padding *padding;
    adj_format *format;
    int64_t *ksize; /* NULL: there is none */
    int64_t *stride, *dilation, (*pad)[2];
} attr_windows;
adj_status attr_read(const adj_attr_lists *lists, attr_windows to, adj_error *error);

/* The same rules for what a caller wrote into adj_conv and adj_pool. */
adj_status attr_check_enums(adj_padding padding, adj_format format, adj_error *error);
/* None negative, none in batch and depth, all zero unless EXPLICIT, each within int32. */
adj_status attr_check_pads(int64_t pad[4][2], adj_padding padding, adj_format format,
                           adj_error *error);
/* Fills in the defaults of a whole adj_conv and checks it. */
adj_status attr_check_conv(adj_conv *a, adj_error *error);

#endif
