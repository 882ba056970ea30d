/* conv_plain.h - a position of y or dx as the definition is written, summed in double: for operands
 * with numbers that a fast kernel would carry where no window has them. Of f32 and f64. */
#ifndef DIRECT_CONV_PLAIN_H
#define DIRECT_CONV_PLAIN_H

#include "conv_axis.h"

typedef struct {
    conv_axes pass;
    adj_dtype dtype;
    ptrdiff_t kw, inputs;                         /* inputs: channels of src */
    const void *src, *bias;                       /* src: of an image; bias: NULL: none */
    const void *filter;                           /* begins with output `first` */
    ptrdiff_t first, of_tap, of_input, of_output; /* of the filter, elements from one to the next */
} conv_plain;

/* A filter as it lies: for dx, turned, it has outputs before inputs. */
static inline void conv_plain_set_filter(conv_plain *p, const void *filter, ptrdiff_t outputs,
                                         int is_turned)
{
    p->filter = filter;
    p->first = 0;
    p->of_tap = p->inputs * outputs;
    p->of_input = is_turned ? 1 : outputs;
    p->of_output = is_turned ? p->inputs : 1;
}

/* dst[o] = the sum of the pass' position at (row, column), for outputs from `first` to `end`. */
void conv_plain_position(const conv_plain *p, ptrdiff_t row, ptrdiff_t column, ptrdiff_t first,
                         ptrdiff_t end, void *dst);

#endif
