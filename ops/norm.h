/* norm.h - what batch norm and group norm share: types of operands, and pieces of gradient rules.
 *
 * x has rank 2 to 5; its channels are the last axis (ADJ_NHWC) or axis 1 (ADJ_NCHW). Statistics,
 * gamma, beta and sums over many elements have the statistics type: f32 for half x, else x's. */
#ifndef NORM_H
#define NORM_H

#include "adjoint_ext.h"

adj_dtype norm_stats_dtype(adj_dtype x);
int norm_channel_axis(const adj_node *x, int64_t format);
int64_t norm_channels(const adj_node *x, int64_t format);
/* [rows, c], or [c] for rows == 0, of the statistics type. */
adj_type norm_stats_type(const adj_node *x, int64_t format, int rows);

/* For infer: is operand 0 a float of such a rank? Has operand i that type? */
adj_status norm_check_x(const adj_node *n);
adj_status norm_check_operand(const adj_node *n, int i, adj_type want);
/* For builders: 0 after recording an error. */
int norm_check_format(const adj_node *x, const char *op, adj_format format);
int norm_check_epsilon(const adj_node *x, const char *op, double epsilon);

adj_node *norm_in_dtype(adj_node *v, adj_dtype dtype);
/* Row 0 or 1 of [2, c], as [c]; and [2, c] of two rows. */
adj_node *norm_row(adj_node *v, int i);
adj_node *norm_two_rows(adj_node *a, adj_node *b);
/* [c] shaped to broadcast over x's channels. */
adj_node *norm_along(adj_node *v, const adj_node *x, int64_t format);
/* x * v along the channels, in x's type. */
adj_node *norm_times(adj_node *x, adj_node *v, int64_t format);
/* [c]: sum(a * b) per channel, in the statistics type. */
adj_node *norm_dot(adj_node *a, adj_node *b, int64_t format);

#endif
