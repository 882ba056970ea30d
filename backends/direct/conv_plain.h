/* conv_plain.h - one position of y or dx by the definition, summed in double: for operands with
 * numbers that a fast kernel would spread beyond their windows. For f32, f64 and bf16. */
#ifndef DIRECT_CONV_PLAIN_H
#define DIRECT_CONV_PLAIN_H

#include "conv_axis.h"

typedef struct {
    conv_axes pass;
    adj_dtype dtype;
    ptrdiff_t kw, inputs;                         /* columns of the filter; channels of src */
    const void *src, *bias;                       /* src: one image; bias: NULL if none */
    const void *filter;                           /* begins at output `first` */
    ptrdiff_t first, of_tap, of_input, of_output; /* first output; to the next tap, input, output */
} conv_plain;

/* Sets the filter in its memory order: for dx it is rotated and has outputs before inputs. */
static inline void conv_plain_set_filter(conv_plain *p, const void *filter, ptrdiff_t outputs,
                                         int is_turned)
{
    p->filter = filter;
    p->first = 0;
    p->of_tap = p->inputs * outputs;
    p->of_input = is_turned ? 1 : outputs;
    p->of_output = is_turned ? p->inputs : 1;
}

/* Sets dst[o] to the sum at position (row, column) of the pass, for outputs from `first` to
 * `end`. */
void conv_plain_position(const conv_plain *p, ptrdiff_t row, ptrdiff_t column, ptrdiff_t first,
                         ptrdiff_t end, void *dst);

#endif
