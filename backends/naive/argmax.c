/* argmax.c - the index of the largest element along an axis. */
#include "kernels.h"
#include "walk.h"

/* Returns the index of the largest of n elements that are `step` apart; a NaN is the largest. */
static int32_t largest(const T *x, int64_t n, int64_t step)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++) {
        const A v = ld(&x[i * step]), max = ld(&x[best * step]);
        if (max == max && (v > max || v != v))
            best = i;
    }
    return (int32_t)best;
}

adj_status KERNEL(argmax)(const adj_call *c)
{
    const adj_node *y = c->group->node[0];
    const adj_shape s = y->in[0]->type.shape;
    const int64_t axis = ((const adj_axis_attrs *)y->attrs)->axis, n = s.dim[axis];
    const T *x = c->in[0];
    int32_t *index = c->out[0];
    int64_t inner = 1;

    for (int64_t d = axis + 1; d < s.rank; d++)
        inner *= s.dim[d];
    const int64_t results = adj_shape_elems(y->type.shape);
#pragma omp parallel for if (results * n >= NAIVE_PARALLEL)
    for (int64_t i = 0; i < results; i++)
        index[i] = largest(x + i / inner * n * inner + i % inner, n, inner);
    return ADJ_OK;
}
