/* loops.h - the loops of a fused group's nodes, by fused_code. */
#ifndef DIRECT_FUSED_POINTWISE_LOOPS_H
#define DIRECT_FUSED_POINTWISE_LOOPS_H

#include "fused_pointwise.h"
#include "backends/direct/isa.h"

enum { FUSED_READ = 8 }; /* most that a loop reads */

/* y[i] from x[..][i], which may be the same memory; k: the node's constants. */
typedef void fused_loop(ptrdiff_t n, float *y, const float *const x[], const float *k);

extern fused_loop *const DIRECT(fused_loops)[];

#endif
