/* pad.c - pad writes x surrounded by zeros; slice copies a box out of x. */
#include "copy.h"

adj_status KERNEL(pad)(const adj_call *c)
{
    const adj_node *y = c->group->node[0];
    const adj_range_attrs *r = y->attrs;
    adj_shape x = y->in[0]->type.shape;

    memset(c->out[0], 0, (size_t)adj_shape_elems(y->type.shape) * sizeof(T));
    if (adj_shape_elems(x) > 0) {
        walk w = box_walk(x, x, y->type.shape);
        copy_box(&w, operand(c, 0), (T *)c->out[0] + index_of(r->a, y->type.shape));
    }
    return ADJ_OK;
}

adj_status KERNEL(slice)(const adj_call *c)
{
    const adj_node *y = c->group->node[0];
    const adj_range_attrs *r = y->attrs;
    adj_shape x = y->in[0]->type.shape;
    walk w = box_walk(y->type.shape, x, y->type.shape);

    copy_box(&w, (const T *)operand(c, 0) + index_of(r->a, x), c->out[0]);
    return ADJ_OK;
}
