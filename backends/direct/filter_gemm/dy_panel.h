/* dy_panel.h - a product's outputs of some pixels of dy, copied to one place (filter_gemm.h). */
#ifndef DIRECT_FILTER_GEMM_DY_PANEL_H
#define DIRECT_FILTER_GEMM_DY_PANEL_H

#include <string.h>

#include "backends/direct/arith.h"
#include "backends/direct/element.h"

/* dst: [pixel][vectors]; src: the product's first output, of so many that there are from it on, in
 * pixels of so many elements. Lanes behind the last output are 0. */
static inline void pack_dy(ptrdiff_t pixel, ptrdiff_t pixels, ptrdiff_t outputs, ptrdiff_t vectors,
                           real *restrict dst, const real *restrict src)
{
    const ptrdiff_t n = min(outputs, vectors * VECTOR);
    for (ptrdiff_t i = 0; i < pixels; i++, dst += vectors * VECTOR, src += pixel) {
        if (n == vectors * VECTOR)
            for (ptrdiff_t k = 0; k < n; k += VECTOR)
                *(vector *)(dst + k) = *(const vector *)(src + k);
        else {
            memcpy(dst, src, (size_t)n * sizeof *dst);
            memset(dst + n, 0, (size_t)(vectors * VECTOR - n) * sizeof *dst);
        }
    }
}

#endif
