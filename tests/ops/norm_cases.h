/* norm_cases.h - what the tests of batch, group and layer norm share: element types, how well each
 * is met, and the type of statistics. */
#ifndef TESTS_OPS_NORM_CASES_H
#define TESTS_OPS_NORM_CASES_H

#include "graph/op.h"

static const adj_dtype dtypes[] = {ADJ_F32, ADJ_F64, ADJ_F16, ADJ_BF16};
enum { DTYPES = 4 };
static const double eps = 1e-5;

static inline double rounding(adj_dtype dtype)
{
    switch (dtype) {
    case ADJ_F64: return 1e-10;
    case ADJ_F32: return 2e-6;
    case ADJ_F16: return 3e-3;
    default: return 2e-2;
    }
}

static inline adj_dtype stats_dtype(adj_dtype x) { return x == ADJ_F64 ? ADJ_F64 : ADJ_F32; }

#endif
