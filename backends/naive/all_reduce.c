/* all_reduce.c - a group of one process: the sum is the process's own value. */
#include "kernels.h"

adj_status KERNEL(all_reduce)(const adj_call *c)
{
    const T *x = operand(c, 0);
    T *y = c->out[0];
    if (y != x)
        memcpy(y, x, (size_t)adj_shape_elems(c->group->node[0]->type.shape) * sizeof *y);
    return ADJ_OK;
}
