/* conv_plain.h - a position of y or dx as the definition is written, summed in double: for operands
 * with numbers that a fast kernel would carry where no window has them. Of f32 and f64. */
#ifndef DIRECT_CONV_PLAIN_H
#define DIRECT_CONV_PLAIN_H

#include "conv_axis.h"

typedef struct {
    conv_axes pass;
    adj_dtype dtype;
    ptrdiff_t kw, inputs, outputs; /* inputs: channels of src; outputs: of dst */
    int is_turned;                 /* dx: the filter has outputs before inputs */
    const void *src;               /* of an image */
    const void *filter, *bias;     /* bias: NULL: none */
} conv_plain;

/* dst[o] = the sum of the pass' position at (row, column), for outputs from `first` to `end`. */
void conv_plain_position(const conv_plain *p, ptrdiff_t row, ptrdiff_t column, ptrdiff_t first,
                         ptrdiff_t end, void *dst);

#endif
