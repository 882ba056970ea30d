/* shards.h - the part of a training step that depends on the batch, once for each shard of a
 * process: copies of the nodes that depend on inputs of the batch, and sums over the copies. */
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
    /* By id: all shards of all processes have one value (sync_batch_norm.h). NULL if no node
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

#endif
