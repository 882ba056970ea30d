/* oracle.h - slow references that share no code with the library: the definition, term by term. */
#ifndef ORACLE_H
#define ORACLE_H

#include <stdint.h>

#include "adjoint.h"

/* A convolution in small ints; tables name what follows last. */
typedef struct {
    int n, h, w, c;
    int kh, kw, last;   /* filter [kh, kw, in, last]; depthwise: [kh, kw, c, multiplier] */
    int in;             /* 0: c, one group */
    int sh, sw, dh, dw; /* 0: 1 */
    adj_padding padding;
    int pad[4]; /* EXPLICIT: top, bottom, left, right */
    int depthwise;
    adj_format format;
} oracle_conv;

enum oracle_result { ORACLE_Y, ORACLE_DX, ORACLE_DW };

/* Defaults filled in; SAME's pads and the sizes of the output found by counting. */
typedef struct {
    oracle_conv a;
    int oh, ow, oc;
    adj_shape x, w, y;
    adj_conv attrs; /* what the library is given */
} oracle_sizes;
oracle_sizes oracle_sizes_of(oracle_conv a);

/* y from x and w; dx from dy and w; dw from x and dy (the requested one may be NULL as operand).
 * The caller frees. */
double *oracle_convolve(const oracle_sizes *s, enum oracle_result wanted, const double *x,
                        const double *w, const double *dy);

#endif
