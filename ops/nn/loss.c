/* loss.c - what training minimises: the mean over the rows that have a label. */
#include "nn.h"

adj_node *adj_loss_softmax_smoothed(adj_node *logits, adj_node *labels, double smoothing)
{
    if (logits == NULL || labels == NULL)
        return NULL;
    /* A mean over a batch does not fit a half type's eight or eleven bits. */
    adj_node *exact = nn_cast(logits, nn_kept_dtype(adj_node_type(logits).dtype));
    adj_node *rows = adj_sparse_softmax_cross_entropy(exact, labels, smoothing);
    if (rows == NULL)
        return NULL;
    adj_node *count = adj_label_count(labels, adj_node_type(rows).dtype);
    return adj_label(adj_div(adj_reduce_sum(rows, (adj_axes){.n = ADJ_ALL}), count), "loss");
}

adj_node *adj_loss_softmax(adj_node *logits, adj_node *labels)
{
    return adj_loss_softmax_smoothed(logits, labels, 0);
}
