/* all_finite.c - sums x - x over the elements: 0 for a number, NaN for NaN and infinities, so
 * the sum is 0 or NaN in any order. */
#include "kernels.h"
#include "walk.h"

adj_status KERNEL(all_finite)(const adj_call *c)
{
    const adj_node *node = c->group->node[0];
    A rest = 0;

    for (int k = 0; k < node->n_in; k++) {
        const T *x = operand(c, k);
        int64_t n = adj_shape_elems(node->in[k]->type.shape);
#if defined(__clang__) /* clang cannot vectorize half types and warns, which is an error */
#pragma omp parallel for reduction(+ : rest) if (n >= NAIVE_PARALLEL)
#else
#pragma omp parallel for simd reduction(+ : rest) if (parallel : n >= NAIVE_PARALLEL)
#endif
        for (int64_t i = 0; i < n; i++) {
            A v = ld(x + i);
            rest += v - v;
        }
    }
    st(c->out[0], rest == 0);
    return ADJ_OK;
}
