/* reduce.c - sum, mean and maximum over axes. */
#include <math.h>

#include "reduce.h"

adj_status KERNEL(reduce_sum)(const adj_call *c)
{
    const adj_node *y = c->group->node[0];
    const adj_reduce_attrs *a = y->attrs;

    reduce(operand(c, 0), y->in[0]->type.shape, a->axes, 0, sum_rows, 1, c->out[0]);
    return ADJ_OK;
}

adj_status KERNEL(reduce_mean)(const adj_call *c)
{
    const adj_node *y = c->group->node[0];
    const adj_reduce_attrs *a = y->attrs;
    adj_shape x = y->in[0]->type.shape;
    int64_t count = adj_shape_elems(x) / adj_shape_elems(y->type.shape);

    reduce(operand(c, 0), x, a->axes, 0, sum_rows, (A)count, c->out[0]);
    return ADJ_OK;
}

/* NaN stays NaN: no comparison replaces it. */
static void max_rows(A acc[], const T *x, int64_t lanes, int64_t n, int64_t step)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t l = 0; l < lanes; l++) {
            A v = ld(&x[i * step + l]);
            acc[l] = v > acc[l] || v != v ? v : acc[l];
        }
}

adj_status KERNEL(reduce_max)(const adj_call *c)
{
    const adj_node *y = c->group->node[0];
    const adj_reduce_attrs *a = y->attrs;

    reduce(operand(c, 0), y->in[0]->type.shape, a->axes, -(A)INFINITY, max_rows, 1, c->out[0]);
    return ADJ_OK;
}
