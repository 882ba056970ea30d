/* filter.h - see filter.c. */
#ifndef DIRECT_GEMM_FILTER_H
#define DIRECT_GEMM_FILTER_H

#include "backends/direct/element.h"
#include "gemm.h"

/* a member of gemm_code */
int TYPED(gemm_prepare_filter)(const adj_call *call, ptrdiff_t job);

#endif
