/* reshape.c - transpose walks x in the order of y's axes; a reshape is a view without a kernel. */
#include "copy.h"

/* Sets y[i0, i1, ..] = x[j] with j[perm[d]] = i_d: axis d of y has the step of x's axis perm[d]. */
adj_status KERNEL(transpose)(const adj_call *c)
{
    const adj_node *y = c->group->node[0];
    const adj_transpose_attrs *a = y->attrs;
    adj_shape x = y->in[0]->type.shape;
    int64_t step[ADJ_MAX_RANK], elems = 1;
    walk w = walk_new();

    for (int64_t d = x.rank - 1; d >= 0; d--) {
        step[d] = elems;
        elems *= x.dim[d];
    }
    elems = 1;
    for (int64_t d = x.rank - 1; d >= 0; d--) {
        walk_add(&w, y->type.shape.dim[d], step[a->perm[d]], elems);
        elems *= y->type.shape.dim[d];
    }
    copy_box(&w, operand(c, 0), c->out[0]);
    return ADJ_OK;
}
