/* conv_rows.h - convolutions as rows of a table, for the tests of fast backends. */
#ifndef CONV_ROWS_H
#define CONV_ROWS_H

#include "candidates.h"

/* Zeros stand for what most rows do not change: stride, dilation, groups 1, a square filter. */
typedef struct {
    int n, h, w, ic, oc; /* oc: depthwise, the multiplier */
    int kh, kw, sh, sw, dh, dw, groups, depthwise;
    adj_padding padding;
    int pt, pb, pl, pr; /* EXPLICIT */
} conv_row;

typedef enum { FORWARD, BACKPROP_INPUT, BACKPROP_FILTER, N_DIRECTION } conv_direction;

typedef enum { INTEGERS, REALS } conv_fill;

/* The node of a row over fresh fixture inputs. */
adj_node *conv_node(fixture *f, const conv_row *r, conv_direction direction, adj_format format,
                    adj_dtype dtype, conv_fill fill);
/* "conv2d_backprop_input f32 NCHW 2x9x9x3 -> 5, 3x3 ..." */
void conv_text(const conv_row *r, const adj_node *y, adj_format format, char *text, size_t size);
/* Products that one element of the result sums, at most: for tolerances. */
double conv_terms(const conv_row *r, conv_direction direction);

#endif
