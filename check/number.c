/* number.c - see number.h. */
#include <math.h>

#include "number.h"

double rounded(adj_dtype dtype, double v)
{
    double element = 0;
    if (!adj_is_float(dtype))
        return v;
    adj_store(dtype, &element, 0, v);
    return adj_load(dtype, &element, 0);
}

int is_inner_operand(const adj_node *n, int k)
{
    const adj_node *v = n->in[k];
    if ((n->op->flags & ADJ_OP_ELEMENTWISE) || v->n_in == 0 || !adj_is_float(v->type.dtype))
        return 0;
    for (int i = 0; i < v->n_in; i++)
        if (adj_operand_position(n, v->in[i]) < 0)
            return 0;
    return 1;
}

double max_magnitude(const double *v, int64_t n)
{
    double max = 0;
    for (int64_t i = 0; i < n; i++)
        max = fmax(max, fabs(v[i]));
    return max;
}
