/* number.h - what both checkers know of numbers: how types round, what a result is linear in. */
#ifndef ADJ_CHECK_NUMBER_H
#define ADJ_CHECK_NUMBER_H

#include "graph/graph.h"

/* Rounding to nearest errs by at most unit * |v|. Sums are made in float or better; a kernel may
 * take numbers below floor as 0. */
typedef struct {
    double unit, accumulate; /* rounding units: of the result, of its sums */
    double floor;            /* below which numbers lose digits */
} precision;
/* All 0 of an integer. */
precision precision_of(adj_dtype dtype);
/* The largest |v[i]|; 0 of none. A NaN is left out. */
double max_magnitude(const double *v, int64_t n);
/* v as the type holds it. */
double rounded(adj_dtype dtype, double v);

static inline size_t node_bytes(const adj_node *n)
{
    return (size_t)node_elems(n) * adj_dtype_size(n->type.dtype);
}

/* Is bit k of a mask of operands set? The last bit is of all others too. */
static inline int has_operand_bit(unsigned mask, int k) { return mask >> (k < 31 ? k : 31) & 1; }
static inline int is_linear_in(const adj_node *n, int k)
{
    return has_operand_bit(n->op->linear_in, k);
}

#endif
