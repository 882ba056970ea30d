/* attr_lists.h - TensorFlow's attributes of convolutions and pools (strides, dilations, padding,
 * explicit_paddings, data_format): reads them from lists and words, and checks the rules that
 * need no shapes.
 *
 * Error messages do not name the op: "strides must have 4 entries (got 5)". */
#ifndef ATTR_LISTS_H
#define ATTR_LISTS_H

#include "adjoint.h"

/* ---- for command lines, files and tests; exported ---- */

/* Attributes of a convolution or pool as lists with lengths and words ("SAME", "NHWC"), for command
 * lines, files and tests. NULL with length 0: not given. adj_conv_from_attrs and
 * adj_pool_from_attrs check all rules that need no shapes; the builders check the others. */
typedef struct {
    int n_ksize, n_strides, n_dilations, n_explicit_paddings; /* lengths of the lists */
    const int64_t *ksize, *strides, *dilations; /* 4 numbers each, as in adj_conv and adj_pool */
    const int64_t *explicit_paddings;           /* 8 numbers: before and after for each axis */
    /* "VALID", "SAME" or "EXPLICIT"; "NHWC" or "NCHW", NULL: "NHWC" */
    const char *padding, *data_format;
} adj_attr_lists;
/* Converts the lists to the attributes of a convolution. ADJ_EARG for invalid ones; *a is then
 * undefined. */
ADJ_API adj_status adj_conv_from_attrs(const adj_attr_lists *lists, adj_conv *a, adj_error *error);
/* Converts the lists to the attributes of a pool. ADJ_EARG for invalid ones; *a is then undefined.
 */
ADJ_API adj_status adj_pool_from_attrs(const adj_attr_lists *lists, adj_pool *a, adj_error *error);
/* Returns 1 and sets *a to the attributes, defaults filled in, of one of the six convolution nodes;
 * returns 0 and leaves *a unchanged for any other node. */
ADJ_API int adj_node_conv(const adj_node *n, adj_conv *a);
/* Returns 1 and sets *a to the attributes, defaults filled in, of a pool or a pool's gradient;
 * returns 0 and leaves *a unchanged for any other node. */
ADJ_API int adj_node_pool(const adj_node *n, adj_pool *a);
/* Sets *shape to the n entries of a list. ADJ_ESHAPE for more than ADJ_MAX_RANK entries; their
 * values are not checked. */
ADJ_API adj_status adj_shape_from_list(int n, const int64_t *list, adj_shape *shape);

/* ---- for the builders ---- */

/* Axis numbers of an image's dimensions in a shape of that format. */
typedef struct {
    int n, h, w, c;
} image_axes;
image_axes axes_of(adj_format format);
/* Moves the entries of two lists of steps and of the pads from the other format's order to that
 * of `to`. */
void attr_move_axes(adj_format to, int64_t a[4], int64_t b[4], int64_t pad[4][2]);
const char *padding_word(adj_padding padding);
/* True if all entries are 0, which stands for an absent list. */
int is_absent(const int64_t four[4]);

/* Reads lists and words of a convolution, or, unless ksize is NULL, of a pool. */
adj_status attr_read(const adj_attr_lists *lists, adj_conv *to, int64_t *ksize, adj_error *error);

/* Applies the same checks to values that a caller wrote into adj_conv and adj_pool. */
adj_status attr_check_enums(adj_padding padding, adj_format format, adj_error *error);
/* Checks that no pad is negative, that those of batch and depth are zero, that all are zero
 * unless padding is EXPLICIT, and that each is within int32. */
adj_status attr_check_pads(int64_t pad[4][2], adj_padding padding, adj_format format,
                           adj_error *error);
/* Fills in the defaults of an adj_conv and checks all of it. */
adj_status attr_check_conv(adj_conv *a, adj_error *error);

#endif
