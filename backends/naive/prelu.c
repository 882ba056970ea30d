/* prelu.c - prelu and its gradients. NaN stays NaN. */
#include "channels.h"
#include "kernels.h"
#include "walk.h"

/* Returns the view in which element i has slope number i / inner % c; a single slope is one
 * channel. */
static channels view_of(adj_shape x, int64_t format, int64_t slopes)
{
    return slopes == 1 ? (channels){1, 1, adj_shape_elems(x)} : channels_of(x, format);
}

/* The slope is the last operand. */
static channels view_of_node(const adj_node *n)
{
    const adj_format_attrs *a = n->attrs;
    return view_of(n->type.shape, a->format, n->in[n->n_in - 1]->type.shape.dim[0]);
}

/* Computes v where x > 0, else slope v. For prelu v is x, for its gradient dy. */
static adj_status run(const adj_call *c, const T *v, const T *x, const T *slope)
{
    const adj_node *node = c->group->node[0];
    const channels at = view_of_node(node);
    int64_t n = adj_shape_elems(node->type.shape);
    T *y = c->out[0];

#pragma omp parallel for if (n >= NAIVE_PARALLEL)
    for (int64_t i = 0; i < n; i++) {
        A each = ld(&v[i]);
        st(&y[i], ld(&x[i]) > 0 ? each : ld(&slope[i / at.inner % at.c]) * each);
    }
    return ADJ_OK;
}

adj_status KERNEL(prelu)(const adj_call *c)
{
    return run(c, operand(c, 0), operand(c, 0), operand(c, 1));
}

adj_status KERNEL(prelu_grad)(const adj_call *c)
{
    return run(c, operand(c, 0), operand(c, 1), operand(c, 2));
}

/* One thread computes each sum, in the order of the elements. */
adj_status KERNEL(prelu_grad_slope)(const adj_call *c)
{
    const adj_node *node = c->group->node[0];
    const adj_prelu_attrs *a = node->attrs;
    const adj_shape shape = node->in[0]->type.shape;
    const channels v = view_of(shape, a->format, a->slopes);
    const T *dy = operand(c, 0), *x = operand(c, 1);
    T *ds = c->out[0];

#pragma omp parallel for if (adj_shape_elems(shape) >= NAIVE_PARALLEL)
    for (int64_t k = 0; k < v.c; k++) {
        A sum = 0;
        for (int64_t o = 0; o < v.outer; o++)
            for (int64_t i = (o * v.c + k) * v.inner, end = i + v.inner; i < end; i++) {
                A at = ld(&x[i]);
                sum += at > 0 ? 0 : ld(&dy[i]) * at;
            }
        st(&ds[k], sum);
    }
    return ADJ_OK;
}
