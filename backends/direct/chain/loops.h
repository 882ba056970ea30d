/* loops.h - the loops of a chain's nodes, by chain_code. */
#ifndef DIRECT_CHAIN_LOOPS_H
#define DIRECT_CHAIN_LOOPS_H

#include "chain.h"
#include "backends/direct/isa.h"

enum { CHAIN_READ = 8 }; /* most that a loop reads */

/* y[i] from x[..][i], which may be the same memory; k: the node's constants. */
typedef void chain_loop(ptrdiff_t n, float *y, const float *const x[], const float *k);

extern chain_loop *const DIRECT(chain_loops)[];

/* columns.c: rows of a chunk, of which `width` columns count. */
typedef struct {
    ptrdiff_t rows, row, width;
} chain_block;

/* y[r][i] from rows x[..][r][i] (they come first) and from vectors that hold for all rows,
 * x[..][i]; y may be one of the rows. */
typedef void chain_column_loop(chain_block b, float *y, const float *const x[]);

/* NULL: the node's loop is in chain_loops. */
chain_column_loop *DIRECT(chain_column_loop)(chain_code code);
/* Adds a node's rows x to its columns' sums; sum[2] is what is subtracted before squaring. */
void DIRECT(chain_add)(chain_block b, chain_code code, float *const sum[3], const float *const x[]);

#endif
