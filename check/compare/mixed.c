/* mixed.c - what mixed precision does to one node's numbers: the half type that its operands and
 * result are rounded to on the way, and what is too small for that type. */
#include <math.h>

#include "compare.h"

adj_dtype config_half(const adj_compare_config *c)
{
    if (c->precision == ADJ_PRECISION_AS_BUILT)
        return ADJ_F32;
    return c->precision == ADJ_PRECISION_F16 ? ADJ_F16 : ADJ_BF16;
}

adj_dtype mixed_type(const adj_compare_config *c, const adj_node *n)
{
    const unsigned may_be_half = ADJ_OP_HALF | ADJ_OP_HALF_ALWAYS | ADJ_OP_HALF_SUM;
    const int is_f32 = config_dtype(c, n->type.dtype) == ADJ_F32;
    return n->op->flags & may_be_half && is_f32 ? config_half(c) : ADJ_F32;
}

/* The largest magnitude in the other float operands, at least 1. */
static double max_of_others(const runner *b, const bound_case *c, int k)
{
    double max = 1;
    for (int m = 0; m < c->node->n_in; m++)
        if (m != k)
            max = fmax(max, max_of_operand(c->node, m,
                                           config_dtype(b->reference, c->node->in[m]->type.dtype),
                                           c->operand[m]));
    return max;
}

double mixed_scale(const runner *b, const adj_compare_config *c, const adj_node *n, int k)
{
    if (!b->scales || mixed_type(c, n) != ADJ_F16 || n->in[k]->role != ADJ_ROLE_GRADIENT)
        return 1;
    if (n->op->sum_in != 0)
        return has_operand_bit(n->op->sum_in, k) ? LOSS_SCALE : 1;
    for (int m = 0; m < k; m++) /* the first in which it is linear */
        if (n->in[m]->role == ADJ_ROLE_GRADIENT && is_linear_in(n, m))
            return 1;
    return is_linear_in(n, k) ? LOSS_SCALE : 1;
}

double mixed_smallest(const runner *b, const bound_case *c, double length)
{
    const adj_dtype half = mixed_type(c->config, c->node);
    double result = 1, operands = 0;
    if (half == ADJ_F32)
        return 0;
    for (int k = 0; k < c->node->n_in; k++) {
        const double scale = mixed_scale(b, c->config, c->node, k);
        result = fmax(result, scale);
        if (!c->is_representable && adj_is_float(c->node->in[k]->type.dtype))
            operands += length * max_of_others(b, c, k) / scale;
    }
    return adj_traits_of(half)->floor * (1 / result + operands);
}
