/* all_finite.c - NaN and infinities are what minus itself is not 0. */
#include "kernels.h"
#include "walk.h"

adj_status KERNEL(all_finite)(const adj_call *c)
{
    const adj_node *node = c->group->node[0];
    int64_t found = 0;

    for (int k = 0; k < node->n_in; k++) {
        const T *x = operand(c, k);
        int64_t n = adj_shape_elems(node->in[k]->type.shape);
#pragma omp parallel for reduction(| : found) if (n >= NAIVE_PARALLEL)
        for (int64_t i = 0; i < n; i++) {
            A v = ld(x + i);
            found |= !(v - v == 0);
        }
    }
    st(c->out[0], found == 0);
    return ADJ_OK;
}
