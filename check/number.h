/* number.h - what both checkers know of numbers: how types round, what a result is linear in. */
#ifndef ADJ_CHECK_NUMBER_H
#define ADJ_CHECK_NUMBER_H

#include "graph/graph.h"

/* The rounding unit of sums of that type: they are made in float or better. */
static inline double sum_unit(adj_dtype dtype)
{
    double unit = adj_traits_of(dtype)->unit;
    return unit < 0x1p-24 ? unit : 0x1p-24;
}
/* The largest |v[i]|; 0 of none. A NaN is left out. */
double max_magnitude(const double *v, int64_t n);
/* v as the type holds it. */
double rounded(adj_dtype dtype, double v);

/* Is operand k computed from n's other operands? Of an element-wise node, which takes anything,
 * none counts as such. */
int is_inner_operand(const adj_node *n, int k);

static inline int is_linear_in(const adj_node *n, int k)
{
    return has_operand_bit(n->op->linear_in, k);
}

#endif
