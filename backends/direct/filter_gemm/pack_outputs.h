/* pack_outputs.h - a product's outputs in dy, copied to one place (filter_gemm.h). */
#ifndef DIRECT_FILTER_GEMM_PACK_OUTPUTS_H
#define DIRECT_FILTER_GEMM_PACK_OUTPUTS_H

#include <string.h>

#include "backends/direct/arith.h"
#include "backends/direct/element.h"
#include "filter_gemm.h"

typedef struct {
    ptrdiff_t pixels;
    ptrdiff_t left;    /* outputs from b on, some of which may be another product's */
    ptrdiff_t vectors; /* of this one */
    const real *b;     /* in dy: the first pixel's first output */
    ptrdiff_t b_pitch;
} product_outputs;

/* Copies them if the kernel does so at all, and o->b is the copy then: [pixel][vectors], in which
 * lanes behind the last output are 0. */
static inline void pack_outputs(const filter_gemm *p, real *packed, product_outputs *o)
{
    if (!p->packs_dy)
        return;
    const ptrdiff_t line = o->vectors * VECTOR, n = min(o->left, line);
    const real *src = o->b;
    real *dst = packed;
    for (ptrdiff_t i = 0; i < o->pixels; i++, dst += line, src += o->b_pitch) {
        if (n == line)
            for (ptrdiff_t k = 0; k < n; k += VECTOR)
                *(vector *)(dst + k) = *(const vector *)(src + k);
        else {
            memcpy(dst, src, (size_t)n * sizeof *dst);
            memset(dst + n, 0, (size_t)(line - n) * sizeof *dst);
        }
    }
    o->b = packed;
    o->b_pitch = line;
}

#endif
