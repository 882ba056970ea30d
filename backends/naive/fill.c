/* fill.c - every element one value. */
#include "kernels.h"

adj_status KERNEL(fill)(const adj_call *c)
{
    const adj_node *y = c->group->node[0];
    const adj_fill_attrs *a = y->attrs;
    int64_t n = adj_shape_elems(y->type.shape);
    T *out = c->out[0];

    for (int64_t i = 0; i < n; i++)
        st(&out[i], (A)a->value);
    return ADJ_OK;
}
