/* bias_add.c - y[.., c, ..] = x[.., c, ..] + b[c]. */
#include "channels.h"
#include "kernels.h"
#include "walk.h"

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
