/* packed_filter.h - a filter of y that is packed before it enters the kernel: where it changes only
 * when a parameter is set, a reorder does that once for all runs.
 *
 * It is the panels of gemm.h, and behind them one element: the filter's products with zero, summed
 * up, which is 0, or NaN if padding would pass on what is not finite. */
#ifndef DIRECT_GEMM_PACKED_FILTER_H
#define DIRECT_GEMM_PACKED_FILTER_H

#include "gemm.h"

/* NULL: out of memory. */
const adj_layout *gemm_packed_filter(direct *d, const gemm *p);
int gemm_is_packed_finite(const gemm *p, const void *packed);

#endif
