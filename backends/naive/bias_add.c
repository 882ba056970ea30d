/* bias_add.c - y[.., c, ..] = x[.., c, ..] + b[c], and the sum of dy over all axes but c. */
#include "reduce.h"

static int64_t channel_axis(adj_shape shape, const adj_format_attrs *a)
{
    return a->format == ADJ_NHWC ? shape.rank - 1 : 1;
}

/* x is seen as [outer, c, inner]; inner is 1 in NHWC. y may be x. */
adj_status KERNEL(bias_add)(const adj_call *c)
{
    const adj_node *node = c->group->node[0];
    adj_shape shape = node->type.shape;
    int64_t axis = channel_axis(shape, node->attrs), channels = shape.dim[axis], inner = 1;
    const T *x = operand(c, 0), *b = operand(c, 1);
    T *y = c->out[0];

    for (int64_t d = axis + 1; d < shape.rank; d++)
        inner *= shape.dim[d];
    int64_t n = adj_shape_elems(shape), outer = n / (channels * inner);
#pragma omp parallel for if (n >= NAIVE_PARALLEL)
    for (int64_t o = 0; o < outer; o++) {
        int64_t row = o * channels * inner;
        if (inner == 1)
            for (int64_t k = 0; k < channels; k++)
                st(&y[row + k], ld(&x[row + k]) + ld(&b[k]));
        else
            for (int64_t i = 0; i < channels * inner; i++)
                st(&y[row + i], ld(&x[row + i]) + ld(&b[i / inner]));
    }
    return ADJ_OK;
}

adj_status KERNEL(bias_add_grad)(const adj_call *c)
{
    const adj_node *db = c->group->node[0];
    adj_shape dy = db->in[0]->type.shape;
    int64_t all = ((int64_t)1 << dy.rank) - 1;
    int64_t others = all & ~((int64_t)1 << channel_axis(dy, db->attrs));

    reduce(operand(c, 0), dy, others, 0, sum_rows, 1, c->out[0]);
    return ADJ_OK;
}
