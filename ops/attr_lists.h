/* attr_lists.h - TensorFlow's attributes of convolutions and pools (strides, dilations, padding,
 * explicit_paddings, data_format): reading them from lists and words, and the rules that need no
 * shapes.
 *
 * Every function returns ADJ_OK, or writes one sentence without the op's name ("strides must have 4
 * entries (got 5)") to message and returns the status. message may be NULL. */
#ifndef ATTR_LISTS_H
#define ATTR_LISTS_H

#include "adjoint.h"

typedef struct {
    char *text;
    size_t size;
} attr_message;

/* Where the dimensions of an image are in a shape of that format. */
typedef struct {
    int n, h, w, c;
} image_axes;
image_axes axes_of(adj_format format);
/* Lists of the other format, two of steps and the pads, in the order of this one. */
void attr_move_axes(adj_format to, int64_t a[4], int64_t b[4], int64_t pad[4][2]);
const char *padding_word(adj_padding padding);

adj_status attr_fail(attr_message m, adj_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What lists and words are read into. */
typedef struct {
    adj_padding *padding;
    adj_format *format;
    int64_t *ksize; /* NULL: there is none */
    int64_t *stride, *dilation, (*pad)[2];
} attr_windows;
adj_status attr_read(const adj_attr_lists *lists, attr_windows to, attr_message m);

/* The same rules for what a caller wrote into adj_conv and adj_pool. */
adj_status attr_check_enums(adj_padding padding, adj_format format, attr_message m);
/* None negative, none in batch and depth, all zero unless EXPLICIT, each within int32. */
adj_status attr_check_pads(int64_t pad[4][2], adj_padding padding, adj_format format,
                           attr_message m);
/* Fills in the defaults of a whole adj_conv and checks it. */
adj_status attr_check_conv(adj_conv *a, attr_message m);

#endif
