/* all_finite.c - 1 if every element of every operand is finite, 0 if one is NaN or infinite. It
 * has no gradient. */
#include "grad.h"
#include "graph/op.h"

static adj_status all_finite_infer(const adj_node *n, void *attrs, adj_type *out)
{
    (void)attrs;
    *out = (adj_type){.dtype = n->in[0]->type.dtype};
    return adj_check_same_dtype(n);
}

const adj_op adj_op_all_finite = {.name = "all_finite",
                                  .example = {ADJ_EXAMPLE_X, ADJ_EXAMPLE_FILTER_OR_X},
                                  .n_in = ADJ_MANY,
                                  .flags = ADJ_OP_NO_GRADIENT,
                                  .infer = all_finite_infer};

adj_node *adj_all_finite(int n, adj_node *const x[])
{
    if (n < 1 || x == NULL)
        return NULL;
    for (int i = 0; i < n; i++)
        if (x[i] == NULL)
            return NULL;
    return adj_node_new(x[0]->graph, &adj_op_all_finite, n, x, NULL);
}
