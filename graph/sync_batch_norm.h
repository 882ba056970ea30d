/* sync_batch_norm.h - batch norm over the whole batch of a sharded training step: its
 * statistics, and the two sums of its gradient, are those of all shards of all processes.
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
#ifndef ADJ_SYNC_BATCH_NORM_H
#define ADJ_SYNC_BATCH_NORM_H

#include "shards.h"

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
