/* rules.h - rewrite rules of several ops: adj_op.fold, adj_op.rewrite_with_users and
 * adj_op.save_for_backward. */
#ifndef OPS_RULES_H
#define OPS_RULES_H

#include "graph/op.h"

/* ---- batch normalization with its convolution, or its gradient with a relu's mask
 * (batch_norm.c) ---- */

adj_node *batch_norm_fold(const adj_node *n, adj_node *const in[]);
/* Rule of batch_norm_grad_sums and batch_norm_grad. */
adj_node *batch_norm_recompute_mask(const adj_node *n, adj_node *const in[], const adj_uses *uses);

/* ---- max pooling with its users and operand (max_pool.c) ---- */

adj_node *max_pool_rewrite_with_users(const adj_node *n, adj_node *const in[],
                                      const adj_uses *uses);
adj_node *relu_grad_rewrite_with_users(const adj_node *n, adj_node *const in[],
                                       const adj_uses *uses);
adj_node *bias_add_grad_rewrite_with_users(const adj_node *n, adj_node *const in[],
                                           const adj_uses *uses);

adj_node *max_pool_save_for_backward(const adj_node *n, adj_node *const in[], const adj_uses *uses);
adj_node *max_pool_grad_save_for_backward(const adj_node *n, adj_node *const in[],
                                          const adj_uses *uses);

#endif
