/* epilogue.h - nodes fused into a convolution or matmul: a bias, the sum with a value of the
 * same shape, such as a residual block's shortcut, relu, and a cast to a half type. Each is
 * optional; the order is fixed. A product and its bias are rounded once; later nodes round as
 * they do alone. */
#ifndef DIRECT_EPILOGUE_H
#define DIRECT_EPILOGUE_H

#include "direct.h"

typedef struct {
    int bias_in, addend_in; /* indices in group->in; -1 if none */
    int has_relu;
    adj_dtype stored; /* type of the result: that of the sums, or a half type */
} direct_epilogue;

/* True if n is a bias_add over root's last axis. Biases along other axes are not fused. */
int direct_is_bias_of(const adj_node *n, const adj_node *root);
/* Writes root and its bias_add, if that is root's only user, to group; returns how many these
 * are. */
int direct_match_bias(const adj_node *root, const adj_uses *uses, int max, const adj_node **group);
/* True if n is a cast to f32. */
int direct_is_widening(const adj_node *n);
/* Writes root, a filter's gradient, to group, and its cast to f32 if root is bf16 and the cast
 * is its only user; returns how many these are. */
int direct_match_filter(const adj_node *root, const adj_uses *uses, int max,
                        const adj_node **group);
/* Reads the epilogue of a group that begins with the convolution or matmul. Returns 0 if the
 * group has other nodes, or if an inner value leaves it. */
int direct_read_epilogue(const adj_group *g, direct_epilogue *e);
/* adj_kernel.epilogue: all of it; the group already has the bias. For a kernel that stores no casts
 * and refuses them, the plan takes the nodes before. */
int direct_propose_epilogue(const adj_node *last, const adj_uses *uses, int max,
                            const adj_node **nodes);

#endif
