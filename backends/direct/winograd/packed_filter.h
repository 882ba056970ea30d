/* packed_filter.h - the filter of y and dx, transformed before it enters the kernel: where it
 * changes only when a parameter is set, a reorder does that once, and neither a slice of a few
 * images nor a single one has to. It is u of image.c. */
#ifndef DIRECT_WINOGRAD_PACKED_FILTER_H
#define DIRECT_WINOGRAD_PACKED_FILTER_H

#include "winograd.h"

/* NULL: out of memory. */
const adj_layout *winograd_packed_filter(direct *d, const winograd *p);

#endif
