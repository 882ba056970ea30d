/* packed_filter.h - a filter of y that is packed before it enters the kernel: if it changes only
 * when a parameter is set, a reorder packs it once for all runs.
 *
 * It holds the panels of gemm.h, followed by one element: the sum of the filter's products with
 * zero, which is 0, or NaN if an element multiplied by padding is not finite. */
#ifndef DIRECT_GEMM_PACKED_FILTER_H
#define DIRECT_GEMM_PACKED_FILTER_H

#include "gemm.h"

/* Returns NULL if out of memory. */
const adj_layout *gemm_packed_filter(direct *d, const gemm *p);
int gemm_is_packed_finite(const gemm *p, const void *packed);

#endif
