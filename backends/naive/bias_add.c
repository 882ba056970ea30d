/* bias_add.c - y[.., c, ..] = x[.., c, ..] + b[c], and the sum of dy over all axes but c. */
#include "channels.h"
#include "reduce.h"

/* Adds to one pixel of NHWC: a bias for each element. */
static void add_to_pixel(const T *x, const T *b, T *y, int64_t channels)
{
    for (int64_t k = 0; k < channels; k++)
        st(&y[k], ld(&x[k]) + ld(&b[k]));
}

/* Adds to one image of NCHW: a bias for each plane of n elements. */
static void add_to_planes(const T *x, const T *b, T *y, int64_t channels, int64_t n)
{
    for (int64_t k = 0; k < channels; k++) {
        A bias = ld(&b[k]);
        for (int64_t i = k * n; i < (k + 1) * n; i++)
            st(&y[i], ld(&x[i]) + bias);
    }
}

/* y may be x. */
adj_status KERNEL(bias_add)(const adj_call *c)
{
    const adj_node *node = c->group->node[0];
    const channels v =
        channels_of(node->type.shape, ((const adj_format_attrs *)node->attrs)->format);
    const T *x = operand(c, 0), *b = operand(c, 1);
    T *y = c->out[0];
    int64_t size = v.c * v.inner, n = v.outer * size;

#pragma omp parallel for if (n >= NAIVE_PARALLEL)
    for (int64_t first = 0; first < n; first += size) {
        if (v.inner == 1)
            add_to_pixel(x + first, b, y + first, v.c);
        else
            add_to_planes(x + first, b, y + first, v.c, v.inner);
    }
    return ADJ_OK;
}

adj_status KERNEL(bias_add_grad)(const adj_call *c)
{
    const adj_node *db = c->group->node[0];
    adj_shape dy = db->in[0]->type.shape;
    int64_t all = ((int64_t)1 << dy.rank) - 1;
    int64_t format = ((const adj_format_attrs *)db->attrs)->format;
    int64_t others = all & ~((int64_t)1 << channel_axis(dy, format));

    reduce(operand(c, 0), dy, others, 0, sum_rows, 1, c->out[0]);
    return ADJ_OK;
}
