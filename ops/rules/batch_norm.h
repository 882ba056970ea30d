/* batch_norm.h - declarations shared by the files of batch normalization. */
#ifndef ADJ_BATCH_NORM_H
#define ADJ_BATCH_NORM_H

#include "graph/op.h"

/* batch_norm_fold.c: adj_op.fold of batch_norm. */
adj_node *batch_norm_fold(const adj_node *n, adj_node *const in[]);
/* batch_norm_mask.c: adj_op.save_for_backward of batch_norm_grad_sums and batch_norm_grad. */
adj_node *batch_norm_rematerialise_mask(const adj_node *n, adj_node *const in[],
                                        const adj_uses *uses);

#endif
