/* sizes.c - see sizes.h. */
#include "sizes.h"

int64_t weights_classes(const adj_tensors *ours)
{
    const int i = adj_tensors_find(ours, "logits/b");
    return i >= 0 && ours->tensor[i].shape.rank == 1 ? ours->tensor[i].shape.dim[0] : 0;
}

int64_t weights_channels(const adj_tensors *ours, const adj_graph *g)
{
    for (int i = 0; i < adj_graph_node_count(g); i++) {
        const adj_node *n = adj_graph_node_at(g, i);
        if (!adj_node_is_param(n) || adj_node_type(n).shape.rank != 4)
            continue;
        /* [kh, kw, in, out] */
        const int w = adj_tensors_find(ours, adj_node_name(n));
        return w >= 0 && ours->tensor[w].shape.rank == 4 ? ours->tensor[w].shape.dim[2] : 0;
    }
    return 0;
}
