/* packed_filter.h - the filter of y and dx, transformed before it enters the kernel. If it
 * changes only when a parameter is set, a reorder transforms it once, instead of each run for
 * each slice of images. Its layout is image.c's u. */
#ifndef DIRECT_WINOGRAD_PACKED_FILTER_H
#define DIRECT_WINOGRAD_PACKED_FILTER_H

#include "winograd.h"

/* Returns NULL if out of memory. */
const adj_layout *winograd_packed_filter(direct *d, const winograd *p);

#endif
