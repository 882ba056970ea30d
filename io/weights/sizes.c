/* sizes.c - see sizes.h. */
#include "sizes.h"

int64_t weights_classes(const adj_tensors *ours)
{
    const int i = adj_tensors_find(ours, "logits/b");
    const adj_tensor bias = adj_tensors_at(ours, i);
    return bias.shape.rank == 1 ? bias.shape.dim[0] : 0;
}

int64_t weights_channels(const adj_tensors *ours, const adj_graph *g)
{
    for (int i = 0; i < adj_graph_node_count(g); i++) {
        const adj_node *n = adj_graph_node_at(g, i);
        if (!adj_node_is_param(n) || adj_node_type(n).shape.rank != 4)
            continue;
        /* [kh, kw, in, out] */
        const adj_tensor w = adj_tensors_at(ours, adj_tensors_find(ours, adj_node_name(n)));
        return w.shape.rank == 4 ? w.shape.dim[2] : 0;
    }
    return 0;
}
