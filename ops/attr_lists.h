/* attr_lists.h - TensorFlow's attributes of convolutions and pools (strides, dilations, padding,
 * explicit_paddings, data_format): reads them from lists and words, and checks the rules that
 * need no shapes.
 *
 * Error messages do not name the op: "strides must have 4 entries (got 5)". */
#ifndef ATTR_LISTS_H
#define ATTR_LISTS_H

#include "adjoint.h"

/* Axis numbers of an image's dimensions in a shape of that format. */
typedef struct {
    int n, h, w, c;
} image_axes;
image_axes axes_of(adj_format format);
/* Moves the entries of two lists of steps and of the pads from the other format's order to that
 * of `to`. */
void attr_move_axes(adj_format to, int64_t a[4], int64_t b[4], int64_t pad[4][2]);
const char *padding_word(adj_padding padding);

/* The values read from lists and words. */
typedef struct {
    adj_padding *padding;
    adj_format *format;
    int64_t *ksize; /* NULL if the op has none */
    int64_t *stride, *dilation, (*pad)[2];
} attr_windows;
adj_status attr_read(const adj_attr_lists *lists, attr_windows to, adj_error *error);

/* Applies the same checks to values that a caller wrote into adj_conv and adj_pool. */
adj_status attr_check_enums(adj_padding padding, adj_format format, adj_error *error);
/* Checks that no pad is negative, that those of batch and depth are zero, that all are zero
 * unless padding is EXPLICIT, and that each is within int32. */
adj_status attr_check_pads(int64_t pad[4][2], adj_padding padding, adj_format format,
                           adj_error *error);
/* Fills in the defaults of an adj_conv and checks all of it. */
adj_status attr_check_conv(adj_conv *a, adj_error *error);

#endif
