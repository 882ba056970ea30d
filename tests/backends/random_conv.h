/* random_conv.h - what the random rows of the direct kernels' tests are drawn with. */
#ifndef TESTS_RANDOM_CONV_H
#define TESTS_RANDOM_CONV_H

#include "tests/backends/conv_problem.h"

/* lo to hi; the same for the same counter, which goes on. */
static inline int draw(uint32_t *counter, int lo, int hi)
{
    uint32_t word[4];
    adj_philox((uint32_t[]){(*counter)++, 0, 0, 0}, (uint32_t[]){3, 4}, word);
    return lo + (int)(word[0] % (uint32_t)(hi - lo + 1));
}

/* SAME, or EXPLICIT with room for the kernel. */
static inline void draw_padding(oracle_conv *a, uint32_t *k)
{
    a->padding = draw(k, 0, 1) ? ADJ_SAME : ADJ_EXPLICIT;
    for (int i = 0; i < 4; i++)
        a->pad[i] = draw(k, 0, 4);
    int reach_h = (a->kh - 1) * (a->dh > 0 ? a->dh : 1) + 1;
    int reach_w = (a->kw - 1) * (a->dw > 0 ? a->dw : 1) + 1;
    int short_h = reach_h - a->h - a->pad[0] - a->pad[1];
    int short_w = reach_w - a->w - a->pad[2] - a->pad[3];
    a->pad[1] += short_h > 0 ? short_h : 0;
    a->pad[3] += short_w > 0 ? short_w : 0;
}

#endif
