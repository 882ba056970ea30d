/* broadcast.c - broadcast_to: copies x with a step of 0 along the repeated axes. */
#include "copy.h"

adj_status KERNEL(broadcast_to)(const adj_call *c)
{
    const adj_node *y = c->group->node[0];
    adj_shape x = y->in[0]->type.shape, shape = y->type.shape;
    int64_t step[2] = {1, 1};
    walk w = walk_new();

    for (int64_t d = shape.rank - 1; d >= 0; d--) {
        int64_t axis = d - (shape.rank - x.rank), dim = axis < 0 ? 1 : x.dim[axis];
        walk_add(&w, shape.dim[d], dim == 1 ? 0 : step[0], step[1]);
        step[0] *= dim;
        step[1] *= shape.dim[d];
    }
    copy_box(&w, operand(c, 0), c->out[0]);
    return ADJ_OK;
}
