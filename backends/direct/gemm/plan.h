/* plan.h - see plan.c. */
#ifndef DIRECT_GEMM_PLAN_H
#define DIRECT_GEMM_PLAN_H

#include "gemm.h"

enum { GEMM_PACKED_POSITIONS = 2048 }; /* positions from which on the cost of packing is small */

/* Plans the group's first n_own nodes with their epilogue, and a fused group if there are more;
 * sets prep->scratch. Transposed matrices must be refused by the caller. Returns 0 if gemm.h
 * does not support the group, or if it is too large. */
int gemm_plan(gemm *p, const direct *d, const adj_group *group, const direct_epilogue *epilogue,
              adj_prep *prep);

#endif
