/* shards.h - the part of a training step that is of the batch, once for each of a process's shards:
 * copies of the nodes that follow from inputs of the batch, and sums over the copies. */
#ifndef ADJ_SHARDS_H
#define ADJ_SHARDS_H

#include "graph.h"

typedef struct {
    adj_graph *g;
    region *p;            /* for what is gone afterwards */
    int n;                /* nodes of the step as it was */
    int shards;           /* of this process */
    int64_t first;        /* the number of its first shard among those of all processes */
    int64_t all;          /* shards of all processes */
    const char *of_batch; /* by id: it follows from an input of the batch, and is no update */
    /* By id: one value for all shards of all processes (sync_batch_norm.h). NULL: none is. */
    const char *is_common;
    adj_node ***image;   /* [shard][id]: in that shard; NULL where it is the node itself */
    int n_sum;           /* values that are summed */
    adj_node **value;    /* n_sum: as in the first shard; then their sums */
    adj_node ***pending; /* [level][n_sum]: sums of 2^level shards that wait for their neighbor */
    char has_pending[32];
} shards;

/* All copies, and the sums in s->value, of floats of 16 bits in f32: neighbors first, then
 * neighboring pairs, and so on. It is the tree in which processes add up theirs, so that it is the
 * same whoever has which shards, if each has a power of two of them. Shard after shard; node after
 * node where shards have values in common, as each then waits for the others. Returns the graph's
 * status. */
adj_status shards_make(shards *s);

/* One sum of n values, in that tree and as wide. */
adj_node *shards_sum(adj_node *const x[], int n);
/* Of this process's sum: the mean over the shards of all. */
adj_node *shards_mean(const shards *s, adj_node *sum);

#endif
