/* sync_batch_norm.h - batch norm over the whole batch of a training step that is shared out: its
 * statistics, and the two sums of its gradient, are those of all shards of all processes.
 *
 * Of S shards with m elements a channel each: the mean is the mean of the shards' means; the
 * variance is the mean of their variances plus that of (their mean - the mean)^2. The mean of
 * squares would do with one reduction, but in f32 a variance that is small against the mean cancels
 * there; so c numbers are reduced once more.
 *
 * A shard's loss is that of its own images, and the step's is the mean of these; so in each shard
 * dy is S times what it is in the whole batch, and so is dx:
 *   dx = gamma * s * (dy - (sum(dy) + xhat * sum(dy * xhat)) / (S * m)), sums over all shards
 * batch_norm_grad divides by its own m: it reads the means over the shards of their sums. They are
 * the means of dgamma and dbeta as well. */
#ifndef ADJ_SYNC_BATCH_NORM_H
#define ADJ_SYNC_BATCH_NORM_H

#include "shards.h"

/* Whether a node becomes one value for all shards; differs: by id, of its operands among others, a
 * shard has a value of its own. is_common: by id, of its operands. */
int is_synchronized(const adj_node *n, const char *differs, const char *is_common);

/* What stands for n in all shards; x: what each of this process's shards has. */
adj_node *synchronized(const shards *s, const adj_node *n, adj_node *const x[]);

/* If n is what adj_layer_batch_norm makes of statistics, the operands' images become those for the
 * whole batch: the factor m / (m - 1) of the variance has all of its elements. */
void count_whole_batch(const shards *s, const adj_node *n, adj_node *in[]);

/* ADJ_EARG if a gradient goes through common statistics otherwise than by batch norm's own rule:
 * its parts would have to be added up over the shards too. of_batch: by id, follows from the batch.
 */
adj_status check_gradients(const shards *s, const char *of_batch, const char *differs);

#endif
