/* pack_outputs.h - copies a product's outputs in dy to contiguous memory (filter_gemm.h). */
#ifndef DIRECT_FILTER_GEMM_PACK_OUTPUTS_H
#define DIRECT_FILTER_GEMM_PACK_OUTPUTS_H

#include <string.h>

#include "backends/direct/arith.h"
#include "backends/direct/element.h"
#include "filter_gemm.h"

typedef struct {
    ptrdiff_t pixels;
    ptrdiff_t left;    /* outputs from b on, some of which may belong to another product */
    ptrdiff_t vectors; /* vectors of this product */
    const real *b;     /* the first pixel's first output in dy */
    ptrdiff_t b_pitch;
} product_outputs;

/* Copies the outputs if the plan says so; o->b then points to the copy: [pixel][vectors], with
 * zeros in lanes after the last output. */
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
