/* pack_outputs.h - a product's outputs in dy, copied to one place (filter_gemm.h). */
#ifndef DIRECT_FILTER_GEMM_PACK_OUTPUTS_H
#define DIRECT_FILTER_GEMM_PACK_OUTPUTS_H

#include <string.h>

#include "backends/direct/arith.h"
#include "backends/direct/element.h"
#include "filter_gemm.h"

typedef struct {
    const real *dy; /* the first pixel's first output */
    ptrdiff_t pixels;
    ptrdiff_t outputs, vectors; /* that there are from the first on; that are packed */
} product_outputs;

/* To [pixel][vectors]; lanes behind the last output are 0. */
static inline void pack_outputs(const filter_gemm *p, const product_outputs *o, real *packed)
{
    const ptrdiff_t line = o->vectors * VECTOR, n = min(o->outputs, line);
    const real *src = o->dy;
    for (ptrdiff_t i = 0; i < o->pixels; i++, packed += line, src += p->y.c) {
        if (n == line)
            for (ptrdiff_t k = 0; k < n; k += VECTOR)
                *(vector *)(packed + k) = *(const vector *)(src + k);
        else {
            memcpy(packed, src, (size_t)n * sizeof *packed);
            memset(packed + n, 0, (size_t)(line - n) * sizeof *packed);
        }
    }
}

#endif
