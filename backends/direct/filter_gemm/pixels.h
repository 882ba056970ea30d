/* pixels.h - see pixels.c. */
#ifndef DIRECT_FILTER_GEMM_PIXELS_H
#define DIRECT_FILTER_GEMM_PIXELS_H

#include "backends/direct/element.h"
#include "filter_gemm.h"

/* a member of filter_gemm_code */
void TYPED(filter_gemm_add_pixels)(const adj_call *call, ptrdiff_t job, int thread);

#endif
