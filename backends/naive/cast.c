/* cast.c - converts to another dtype. Compiled for the result's type, or for the operand's if
 * the result is i32. */
#include "kernels.h"
#include "walk.h"

adj_status KERNEL(cast)(const adj_call *c)
{
    const adj_node *node = c->group->node[0];
    adj_dtype from = node->in[0]->type.dtype, to = node->type.dtype;
    const void *x = operand(c, 0);
    void *y = c->out[0];
    int64_t n = adj_shape_elems(node->type.shape);

#pragma omp parallel for if (n >= NAIVE_PARALLEL)
    for (int64_t i = 0; i < n; i++) {
        if (from == ADJ_F32 && to == ELEM_DTYPE) /* float to A is exact, so st() rounds once */
            st(&((T *)y)[i], (A)((const float *)x)[i]);
        else /* through double: A would round f64 twice */
            adj_store(to, y, i, adj_load(from, x, i));
    }
    return ADJ_OK;
}
