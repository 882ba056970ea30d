/* bands.h - a fused group as the epilogue of another kernel: what that kernel computes, its
 * product, is read band by band while it is in the cache, so no pass over memory is made for it.
 * Behind a convolution these are a batch norm's statistics, behind an input's gradient relu's mask
 * and the gradient of a bias, above all.
 *
 * Only of f32, and only what one row kernel computes (row_kernel.h). A part is a segment of the
 * pass, so no bit of the sums depends on whether the pass is one by itself. A product that nobody
 * else reads is written where the group's result will be, and masked there. */
#ifndef DIRECT_FUSED_POINTWISE_BANDS_H
#define DIRECT_FUSED_POINTWISE_BANDS_H

#include "fused_pointwise.h"

/* ---- run.c, per instruction set ---- */

typedef struct fused_bands_code { /* what a thread does for each part */
    void (*start)(const adj_call *c, const fused_group *p, int thread);
    /* A band, by its number in the product and in the part. */
    void (*band)(const adj_call *c, const fused_group *p, int thread, int64_t band, int64_t number);
    void (*keep)(const adj_call *c, const fused_group *p, int thread, ptrdiff_t part);
} fused_bands_code;

extern const fused_bands_code direct_fused_bands_base, direct_fused_bands_avx2,
    direct_fused_bands_avx512;

/* ---- match.c ---- */

/* adj_kernel.epilogue: the group of a reader of `product` that reads nothing else that is newer. */
int fused_propose_bands(const adj_node *product, const adj_uses *uses, int max,
                        const adj_node **nodes);

/* ---- fused_pointwise.c ---- */

/* Lays out the pass of g's nodes behind the first n_own, the last of which is the product: in bands
 * of p->band elements, which divide it evenly, and p->work.jobs parts of them. 0: it is no such
 * group, or is faster as a pass of its own. The product is to be written to g's first result. */
int fused_lay_out_bands(fused_group *p, const direct *d, const adj_group *g, int n_own);
/* Adds what it needs to the scratch. */
void fused_reserve_bands(fused_group *p, size_t *scratch);

#endif
