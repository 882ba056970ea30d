/* plan.h - see plan.c. */
#ifndef DIRECT_GEMM_PLAN_H
#define DIRECT_GEMM_PLAN_H

#include "gemm.h"

enum { GEMM_PACKED_POSITIONS = 2048 }; /* from which on packing costs little beside the product */

/* Of the group's first n_own nodes with their epilogue, and of a fused group if there are more;
 * sets prep->scratch. Matrices are taken as they lie: transposes are the caller's to refuse.
 * 0: it is none that gemm.h describes, or too large. */
int gemm_plan(gemm *p, const direct *d, const adj_group *group, const direct_epilogue *epilogue,
              adj_prep *prep);

#endif
