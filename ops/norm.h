/* norm.h - declarations shared by batch norm and group norm: types of operands, and pieces of
 * gradient rules.
 *
 * Statistics, gamma, beta and sums over many elements have the statistics type: f32 for half x,
 * else x's. */
#ifndef NORM_H
#define NORM_H

#include "channel.h"

adj_dtype norm_stats_dtype(adj_dtype x);

/* Implements adj_op.infer: operands have the types of adj_op.example; the result is an
 * image like x, or two rows of statistics. */
adj_status norm_infer(const adj_node *n, void *attrs, adj_type *out);

adj_node *norm_in_dtype(adj_node *v, adj_dtype dtype);
/* Returns row 0 or 1 of [2, c], as [c]; and [2, c] from two rows. */
adj_node *norm_row(adj_node *v, int i);
adj_node *norm_two_rows(adj_node *a, adj_node *b);
/* Reshapes [c] to broadcast over x's channels. */
adj_node *norm_along(adj_node *v, const adj_node *x, int64_t format);
/* Returns x * v along the channels, in x's type. */
adj_node *norm_times(adj_node *x, adj_node *v, int64_t format);
/* Returns sum(a * b) per channel, [c], in the statistics type. */
adj_node *norm_dot(adj_node *a, adj_node *b, int64_t format);

#endif
