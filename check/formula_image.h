/* formula_image.h - pixels of images, where formulas find them. */
#ifndef ADJ_CHECK_FORMULA_IMAGE_H
#define ADJ_CHECK_FORMULA_IMAGE_H

#include "formula.h"

typedef struct {
    int64_t n, h, w, c;
} pixel;

static inline int64_t at_pixel(adj_shape s, int64_t format, pixel p)
{
    return format == ADJ_NCHW ? ((p.n * s.dim[1] + p.c) * s.dim[2] + p.h) * s.dim[3] + p.w
                              : ((p.n * s.dim[1] + p.h) * s.dim[2] + p.w) * s.dim[3] + p.c;
}

static inline pixel pixel_of(adj_shape s, int64_t format, int64_t i)
{
    const int64_t *d = s.dim;
    if (format == ADJ_NCHW)
        return (pixel){i / d[3] / d[2] / d[1], i / d[3] % d[2], i % d[3], i / d[3] / d[2] % d[1]};
    return (pixel){i / d[3] / d[2] / d[1], i / d[3] / d[2] % d[1], i / d[3] % d[2], i % d[3]};
}

/* True if h, w is in the geometry's input, not in its padding. */
static inline int is_inside(const adj_conv_geom *g, int64_t h, int64_t w)
{
    return h >= 0 && w >= 0 && h < g->ih && w < g->iw;
}

#endif
