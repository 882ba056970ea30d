/* norm_cases.h - declarations that the tests of batch, group and layer norm share: the tolerance
 * of each type, the type of statistics. */
#ifndef TESTS_OPS_NORM_CASES_H
#define TESTS_OPS_NORM_CASES_H

#include <math.h>

#include "expect.h"
#include "graph/op.h"
#include "tests/norm_reference.h"

static const double eps = 1e-5;
static const double rounding[] = {
    [ADJ_F32] = 2e-6, [ADJ_F64] = 1e-10, [ADJ_F16] = 3e-3, [ADJ_BF16] = 2e-2};

static inline adj_dtype stats_dtype(adj_dtype x) { return x == ADJ_F64 ? ADJ_F64 : ADJ_F32; }

#endif
