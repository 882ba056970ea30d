/* details.h - figures of an imported network for the tool. */
#ifndef ADJ_ONNX_DETAILS_H
#define ADJ_ONNX_DETAILS_H

#include "adjoint_onnx.h"

typedef struct {
    int64_t classes;   /* size of the last axis of the first output if that has rank 2; else 0 */
    int64_t opset;     /* version of ONNX's operators in the file */
    int n_head;        /* number of parameters of a new last layer (adj_onnx_opts.classes) */
    adj_node *head[2]; /* its weights and its bias */
    int n_folded;      /* batch norms of PyTorch's network that the file lacks */
    int64_t batch;     /* size of the first input's first axis in the file; 0: symbolic */
} onnx_details;
/* Returns the figures of a network that adj_onnx_load made. */
ADJ_API onnx_details adj_onnx_details(const adj_onnx_net *net);

#endif
