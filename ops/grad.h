/* grad.h - builders of the ops that gradients, losses and optimizers are made of. adj_grad and the
 * layers of adjoint_nn.h add these nodes. No program outside the tree needs these builders: the
 * gradient rule of an op of its own is written with those of adjoint_ops.h. Exported for tests.
 * Conventions and errors are those of adjoint_ops.h. dy is always the upstream gradient, of the
 * shape of the op's result y. */
#ifndef OPS_GRAD_H
#define OPS_GRAD_H

#include "graph/op.h"

/* ---- pieces ---- */

/* Returns x itself if it has that type, else a cast of it. */
ADJ_API adj_node *adj_in_dtype(adj_node *x, adj_dtype dtype);
/* Sets *both to the shape to which a and b are broadcast, as in NumPy; returns 0 if they cannot be.
 */
ADJ_API int adj_broadcast_shape(adj_shape a, adj_shape b, adj_shape *both);
/* Returns a constant scalar of x's type. */
ADJ_API adj_node *adj_scalar_like(const adj_node *x, double value);

/* ---- pooling, resizing, bias ---- */

/* The gradient of max_pool, shaped as x: each dy is added at its window's first maximum in
 * row-major order. */
ADJ_API adj_node *adj_max_pool_grad(adj_node *x, adj_node *y, adj_node *dy, const adj_pool *a);
/* The elements of e (shaped as x) at each window's first maximum, shaped as y: the gradient of
 * max_pool_grad with respect to dy. */
ADJ_API adj_node *adj_max_pool_grad_grad(adj_node *x, adj_node *y, adj_node *e, const adj_pool *a);
/* The gradient of avg_pool, of shape input_shape: each dy is divided equally among the elements of
 * its window that lie inside the image. */
ADJ_API adj_node *adj_avg_pool_grad(adj_shape input_shape, adj_node *dy, const adj_pool *a);
/* The gradient of adj_resize with respect to x, whose height and width are given. */
ADJ_API adj_node *adj_resize_grad(adj_node *dy, int64_t height, int64_t width,
                                  const adj_sampling *a);
/* The gradient of bias_add with respect to b [c]: the sum of dy over all axes but the channel's. */
ADJ_API adj_node *adj_bias_add_grad(adj_node *dy, adj_format format);

/* ---- activations ----
 * Gradients as functions of the result y for relu (x gives the same), relu6, leaky_relu, sigmoid
 * and tanh, and of the operand x for the others. */

/* dy where y > 0, else 0. */
ADJ_API adj_node *adj_relu_grad(adj_node *dy, adj_node *y);
/* dy where 0 < y < 6, else 0. */
ADJ_API adj_node *adj_relu6_grad(adj_node *dy, adj_node *y);
/* dy where y > 0, else alpha dy. */
ADJ_API adj_node *adj_leaky_relu_grad(adj_node *dy, adj_node *y, double alpha);
/* dy y (1 - y). */
ADJ_API adj_node *adj_sigmoid_grad(adj_node *dy, adj_node *y);
/* dy (1 - y^2). */
ADJ_API adj_node *adj_tanh_grad(adj_node *dy, adj_node *y);
/* dy s (1 + x (1 - s)), s = sigmoid(x). */
ADJ_API adj_node *adj_silu_grad(adj_node *dy, adj_node *x);
/* dy / 6 where -3 < x < 3, else 0. */
ADJ_API adj_node *adj_hard_sigmoid_grad(adj_node *dy, adj_node *x);
/* dy where x >= 3, dy (x / 3 + 1/2) where -3 < x < 3, else 0. */
ADJ_API adj_node *adj_hard_swish_grad(adj_node *dy, adj_node *x);
/* dy where min <= x <= max, else 0. */
ADJ_API adj_node *adj_clip_grad(adj_node *dy, adj_node *x, double min, double max);
/* dy where x > 0, else dy alpha exp(x). */
ADJ_API adj_node *adj_elu_grad(adj_node *dy, adj_node *x, double alpha);
/* dy times the derivative of gelu in that form at x. */
ADJ_API adj_node *adj_gelu_grad(adj_node *dy, adj_node *x, adj_gelu_form form);
/* dy where x > 0, else slope dy. */
ADJ_API adj_node *adj_prelu_grad(adj_node *dy, adj_node *x, adj_node *slope, adj_format format);
/* The gradient of prelu with respect to slope [slopes]: the sum of x dy where x <= 0, over all axes
 * if slopes is 1, over all but the channel's if it is c. */
ADJ_API adj_node *adj_prelu_grad_slope(adj_node *dy, adj_node *x, int64_t slopes,
                                       adj_format format);

/* ---- normalization; types and formats as for the ops ---- */

/* Returns the type of statistics, gamma and beta for values of type x: f32 for a half type, else x.
 */
ADJ_API adj_dtype adj_stats_dtype(adj_dtype x);
/* Returns row i (0: mean, 1: variance) of statistics [2, c], as [c]. */
ADJ_API adj_node *adj_stats_row(adj_node *stats, int i);
/* Returns statistics [2, c] made of both rows, [c] each. */
ADJ_API adj_node *adj_stats_of(adj_node *mean, adj_node *variance);

/* The gradients of batch_norm with respect to gamma and beta: [2, c]. */
ADJ_API adj_node *adj_batch_norm_grad_sums(adj_node *x, adj_node *stats, adj_node *dy,
                                           double epsilon, adj_format format);
/* The gradient of batch_norm with respect to x, shaped as x, where stats is batch_norm_stats(x) and
 * sums is batch_norm_grad_sums. */
ADJ_API adj_node *adj_batch_norm_grad(adj_node *x, adj_node *stats, adj_node *gamma, adj_node *dy,
                                      adj_node *sums, double epsilon, adj_format format);
/* The gradients of group_norm with respect to gamma and beta: [2, c]. */
ADJ_API adj_node *adj_group_norm_grad_sums(adj_node *x, adj_node *dy, int64_t groups,
                                           double epsilon, adj_format format);
/* The gradient of group_norm with respect to x, shaped as x. */
ADJ_API adj_node *adj_group_norm_grad(adj_node *x, adj_node *gamma, adj_node *dy, int64_t groups,
                                      double epsilon, adj_format format);

/* ---- losses ---- */

/* softmax(logits) - labels, [n, k], also for labels whose sum is not 1. */
ADJ_API adj_node *adj_softmax_cross_entropy_grad(adj_node *logits, adj_node *labels,
                                                 double smoothing);
/* softmax(logits) minus the smoothed one-hot labels, [n, k]; 0 in rows labeled -1. */
ADJ_API adj_node *adj_sparse_softmax_cross_entropy_grad(adj_node *logits, adj_node *labels,
                                                        double smoothing);
/* The number of i32 labels that are not negative, but at least 1: a scalar of dtype. No gradient
 * flows. */
ADJ_API adj_node *adj_label_count(adj_node *labels, adj_dtype dtype);
/* A scalar of the type of the n values: 1 if all their elements are finite, 0 if any is infinite or
 * NaN. No gradient flows. Returns NULL if n is below 1. */
ADJ_API adj_node *adj_all_finite(int n, adj_node *const x[]);

/* ---- optimizers ---- */

/* mu*v + g + decay*p: the next velocity of gradient descent with momentum. ADJ_EARG unless
 * 0 <= mu < 1 and decay is finite and >= 0. */
ADJ_API adj_node *adj_momentum(adj_node *v, adj_node *g, adj_node *p, double mu, double decay);
/* p - lr*(d + decay*p): the next parameter of gradient descent; lr is a scalar of p's type.
 * ADJ_EARG unless decay is finite and >= 0. */
ADJ_API adj_node *adj_sgd_step(adj_node *p, adj_node *d, adj_node *lr, double decay);
/* beta*m + (1-beta)*x: an exponential moving average. ADJ_EARG unless 0 <= beta < 1. */
ADJ_API adj_node *adj_ema(adj_node *m, adj_node *x, double beta);
/* p - lr*(m/(1-beta1^t) / (sqrt(v/(1-beta2^t)) + epsilon) + decay*p): the next parameter of Adam; t
 * is an i32 scalar, 1 in the first step. */
ADJ_API adj_node *adj_adam_step(adj_node *p, adj_node *m, adj_node *v, adj_node *t, adj_node *lr,
                                const adj_adam_attrs *a);
/* step + 1, for an i32 scalar. */
ADJ_API adj_node *adj_next_step(adj_node *step);

#endif
