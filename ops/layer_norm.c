/* layer_norm.c - layer normalization, as torch.nn.LayerNorm: group norm with one group on x as a
 * matrix, each of whose rows is normalized. The reshapes are views. */
#include "norm.h"

/* True if v has the shape of x's last axes; records an error if not. */
static int is_of_last_axes(const adj_node *x, const adj_node *v, int64_t rank, const char *name)
{
    const adj_shape s = x->type.shape, got = v->type.shape;
    adj_shape want = {.rank = rank};
    for (int64_t i = 0; i < rank; i++)
        want.dim[i] = s.dim[s.rank - rank + i];
    if (adj_shape_equal(got, want))
        return 1;
    adj_fail(x->graph, ADJ_ESHAPE,
             "layer_norm: %s does not have the shape of x's last axes (got %s, expected %s)", name,
             adj_shape_text(got).s, adj_shape_text(want).s);
    return 0;
}

adj_node *adj_layer_norm(adj_node *x, adj_node *gamma, adj_node *beta, double epsilon)
{
    if (x == NULL || gamma == NULL || beta == NULL)
        return NULL;
    const adj_shape s = x->type.shape, g = gamma->type.shape;
    if (g.rank < 1 || g.rank > s.rank) {
        adj_fail(x->graph, ADJ_ESHAPE,
                 "layer_norm: gamma has the wrong rank (got %s, expected rank 1 to %lld, x's)",
                 adj_shape_text(g).s, (long long)s.rank);
        return NULL;
    }
    if (!is_of_last_axes(x, gamma, g.rank, "gamma") || !is_of_last_axes(x, beta, g.rank, "beta"))
        return NULL;
    int64_t rows = 1;
    for (int64_t i = 0; i < s.rank - g.rank; i++)
        rows *= s.dim[i];
    const adj_shape row = {1, {adj_shape_elems(g)}};
    adj_node *matrix = adj_reshape(x, (adj_shape){2, {rows, row.dim[0]}});
    adj_node *scale = adj_reshape(gamma, row), *offset = adj_reshape(beta, row);
    return adj_reshape(adj_group_norm(matrix, scale, offset, 1, epsilon, ADJ_NHWC), s);
}
