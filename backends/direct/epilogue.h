/* epilogue.h - what follows a convolution or matmul and is computed along with it: a bias, the sum
 * with a value of the same shape, as a block's shortcut, relu, and a cast to a half type, each of
 * them or none, in this order. A sum and its bias are rounded once, what follows as where it is a
 * step by itself. */
#ifndef DIRECT_EPILOGUE_H
#define DIRECT_EPILOGUE_H

#include "direct.h"

typedef struct {
    int bias_in, addend_in; /* among group->in; -1: none */
    int has_relu;
    adj_dtype stored; /* the result's type: that of the sums, or a half type */
} direct_epilogue;

/* Of a group that begins with the convolution or matmul. 0: it has other nodes, or a value inside
 * leaves it. */
int direct_read_epilogue(const adj_group *g, direct_epilogue *e);
/* adj_kernel.epilogue of kernels that take all of it but casts; the bias is in the group then. */
int direct_propose_epilogue(const adj_node *last, const adj_uses *uses, int max,
                            const adj_node **nodes);
/* The same of kernels that take casts, too. */
int direct_propose_cast_epilogue(const adj_node *last, const adj_uses *uses, int max,
                                 const adj_node **nodes);

#endif
