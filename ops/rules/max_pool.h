/* max_pool.h - rewrite rules for max pooling with its users and operand:
 * adj_op.rewrite_with_users and adj_op.save_for_backward. */
#ifndef OPS_RULES_MAX_POOL_H
#define OPS_RULES_MAX_POOL_H

#include "graph/op.h"

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
