/* adjoint_ops_grad.h - the ops that gradients, losses and optimizers are made of. adj_grad and the
 * layers of adjoint_nn.h make these nodes; a program needs them for a gradient or an optimizer of
 * its own. Conventions are adjoint_ops.h's. */
#ifndef ADJOINT_OPS_GRAD_H
#define ADJOINT_OPS_GRAD_H

#include "adjoint_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- pooling, resizing, bias ---- */

/* dy (shaped as y) goes to the first maximum of each window in row-major order: shaped as x. */
ADJ_API adj_node *adj_max_pool_grad(adj_node *x, adj_node *y, adj_node *dy, const adj_pool *a);
/* The elements of e (shaped as x) at each window's first maximum: the adjoint of max_pool_grad. */
ADJ_API adj_node *adj_max_pool_grad_grad(adj_node *x, adj_node *y, adj_node *e, const adj_pool *a);
/* Each window's dy in equal shares to its valid elements, of an x of shape input_shape. */
ADJ_API adj_node *adj_avg_pool_grad(adj_shape input_shape, adj_node *dy, const adj_pool *a);
/* The adjoint of adj_resize: height and width are x's, dy is shaped as the result. */
ADJ_API adj_node *adj_resize_grad(adj_node *dy, int64_t height, int64_t width,
                                  const adj_sampling *a);
/* [c]: the sum of dy over the other axes. */
ADJ_API adj_node *adj_bias_add_grad(adj_node *dy, adj_format format);

/* ---- activations ----
 * In terms of the result y for relu (whose x will do as well), relu6, leaky_relu, sigmoid and tanh;
 * of x for the others. */

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
/* dy times the slope of x P(x) in that form. */
ADJ_API adj_node *adj_gelu_grad(adj_node *dy, adj_node *x, adj_gelu_form form);
/* dy where x > 0, else slope dy. */
ADJ_API adj_node *adj_prelu_grad(adj_node *dy, adj_node *x, adj_node *slope, adj_format format);
/* [slopes], c or 1: the sum of x dy where x <= 0, over all axes, or all but the channel's. */
ADJ_API adj_node *adj_prelu_grad_slope(adj_node *dy, adj_node *x, int64_t slopes,
                                       adj_format format);

/* ---- normalization; types and formats as for the ops ---- */

/* [2, c]: dgamma and dbeta. */
ADJ_API adj_node *adj_batch_norm_grad_sums(adj_node *x, adj_node *stats, adj_node *dy,
                                           double epsilon, adj_format format);
/* dx of a training batch norm, stats being those of x. */
ADJ_API adj_node *adj_batch_norm_grad(adj_node *x, adj_node *stats, adj_node *gamma, adj_node *dy,
                                      adj_node *sums, double epsilon, adj_format format);
/* [2, c]: dgamma and dbeta. */
ADJ_API adj_node *adj_group_norm_grad_sums(adj_node *x, adj_node *dy, int64_t groups,
                                           double epsilon, adj_format format);
/* dx, shaped as x. */
ADJ_API adj_node *adj_group_norm_grad(adj_node *x, adj_node *gamma, adj_node *dy, int64_t groups,
                                      double epsilon, adj_format format);

/* ---- losses ---- */

/* softmax(logits) - labels, whatever the labels sum to. [n, k] */
ADJ_API adj_node *adj_softmax_cross_entropy_grad(adj_node *logits, adj_node *labels,
                                                 double smoothing);
/* softmax(logits) - the smoothed labels; 0 in rows labeled -1. [n, k] */
ADJ_API adj_node *adj_sparse_softmax_cross_entropy_grad(adj_node *logits, adj_node *labels,
                                                        double smoothing);
/* How many of the i32 labels are not negative, at least 1: a scalar of dtype. No gradient flows. */
ADJ_API adj_node *adj_label_count(adj_node *labels, adj_dtype dtype);
/* A scalar of the type of the n values: 1 if all their elements are finite, 0 if one is infinite or
 * NaN. No gradient flows. NULL if n is below 1. */
ADJ_API adj_node *adj_all_finite(int n, adj_node *const x[]);

/* ---- optimizers ---- */

/* mu*v + g + decay*p. */
ADJ_API adj_node *adj_momentum(adj_node *v, adj_node *g, adj_node *p, double mu, double decay);
/* p - lr*(d + decay*p); lr: scalar of p's dtype. */
ADJ_API adj_node *adj_sgd_step(adj_node *p, adj_node *d, adj_node *lr, double decay);
/* beta*m + (1-beta)*x. */
ADJ_API adj_node *adj_ema(adj_node *m, adj_node *x, double beta);
/* The constants of Adam (Kingma and Ba, 2014). */
typedef struct {
    double beta1, beta2, epsilon, decay; /* decay: decoupled, of AdamW */
} adj_adam_attrs;
/* p - lr*(m/(1-beta1^t) / (sqrt(v/(1-beta2^t)) + epsilon) + decay*p); t: i32 scalar, 1 in the first
 * step. */
ADJ_API adj_node *adj_adam_step(adj_node *p, adj_node *m, adj_node *v, adj_node *t, adj_node *lr,
                                const adj_adam_attrs *a);
/* i32 scalar + 1. */
ADJ_API adj_node *adj_next_step(adj_node *step);

#ifdef __cplusplus
}
#endif
#endif
