/* shards.h - the part of a training step that depends on the batch, once for each shard of a
 * process: copies of the nodes that depend on inputs of the batch, and sums over the copies; and
 * batch norm over the whole batch. */
#ifndef ADJ_SHARDS_H
#define ADJ_SHARDS_H

#include "graph.h"

typedef struct {
    adj_graph *g;
    region *p;            /* for temporary lists */
    int n;                /* nodes of the original step */
    int shards;           /* shards of this process */
    int64_t first;        /* index of this process's first shard among those of all processes */
    int64_t all;          /* shards of all processes */
    const char *of_batch; /* by id: it depends on an input of the batch and is not an update */
    /* By id: all shards of all processes have one value. NULL if no node
     * has. */
    const char *is_common;
    adj_node ***image; /* [shard][id]: the node in that shard; NULL for the original node */
    int n_sum;         /* values to be summed */
    adj_node **value;  /* n_sum: the values in the first shard; afterwards their sums */
} shards;

/* Makes all copies, and the sums in s->value; 16-bit floats are added in f32. Sums form a binary
 * tree: adjacent shards are added, then adjacent pairs, and so on. Processes reduce in the same
 * tree, so the result does not depend on which process has which shards if each has a power of
 * two of them. Copies are made shard after shard, or node after node if shards have common
 * values, which wait for all shards. Returns the graph's status. */
adj_status shards_make(shards *s);

/* Returns the sum of n values, in that tree and with its f32 rule. */
adj_node *shards_sum(adj_node *const x[], int n);
/* Returns the mean over the shards of all processes, given this process's sum. */
adj_node *shards_mean(const shards *s, adj_node *sum);

/* ---- batch norm over the whole batch (sync_batch_norm.c) ----
 *
 * Its statistics, and the two sums of its gradient, are those of all shards of all processes.
 *
 * For S shards with m elements per channel each, the mean is the mean of the shards' means. The
 * variance is the mean of their variances plus that of (their mean - the mean)^2. The mean of
 * squares would need one reduction only, but in f32 a variance that is small against the mean
 * cancels there; so c numbers are reduced once more.
 *
 * A shard's loss is that of its own images, and the step's loss is the mean of these. So in each
 * shard dy is S times that of the whole batch, and so is dx:
 *
 *   dx = gamma * s * (dy - (sum(dy) + xhat * sum(dy * xhat)) / (S * m)), sums over all shards
 *
 * batch_norm_grad divides by its own m, so it reads the means over the shards of their sums.
 * They are the means of dgamma and dbeta as well. */

/* True if all shards compute one value for the node. differs: by id, shards have different
 * values for it; is_common: by id, all shards have one value. Both cover the node's operands. */
int is_synchronized(const adj_node *n, const char *differs, const char *is_common);

/* Returns the node that replaces n in all shards; x: n's node in each of this process's shards. */
adj_node *synchronized(const shards *s, const adj_node *n, adj_node *const x[]);

/* If n multiplies common statistics by adj_layer_batch_norm's unbiased factor m / (m - 1),
 * replaces the factor in[1] by the whole batch's. */
void count_whole_batch(const shards *s, const adj_node *n, adj_node *in[]);

/* Checks that gradients pass common statistics only by batch norm's own rule. ADJ_EARG
 * otherwise: the gradients would have to be summed over the shards too. of_batch: by id, depends
 * on the batch. */
adj_status check_gradients(const shards *s, const char *of_batch, const char *differs);

#endif
