/* loops.h - the loops of a chain's nodes, by chain_code. */
#ifndef DIRECT_CHAIN_LOOPS_H
#define DIRECT_CHAIN_LOOPS_H

#include "chain.h"
#include "backends/direct/isa.h"

enum { CHAIN_READ = 8 }; /* most that a loop reads */

/* y[i] from x[..][i], which may be the same memory; k: the node's constants. */
typedef void chain_loop(ptrdiff_t n, float *y, const float *const x[], const float *k);

extern chain_loop *const DIRECT(chain_loops)[];

#endif
