/* select.c - copies the selected operand. */
#include "kernels.h"

adj_status KERNEL(select)(const adj_call *c)
{
    const adj_node *y = c->group->node[0];
    double cond = adj_load(y->in[0]->type.dtype, operand(c, 0), 0);

    memcpy(c->out[0], operand(c, cond != 0 ? 1 : 2), adj_type_bytes(y->type));
    return ADJ_OK;
}
