/* network.h - a network with its weights, written as an ONNX file. */
#ifndef CLI_CONVERT_NETWORK_H
#define CLI_CONVERT_NETWORK_H

#include "adjoint_io.h"
#include "cli/standard.h"

/* Batch of the network's graph, which is symbolic in the file: a size that no other axis of a first
 * layer has. */
enum { ONNX_BATCH = 2 };

/* A network to write. */
typedef struct {
    const char *model;          /* as given; NULL: only the weights' file may name it */
    adj_node *logits;           /* of a built-in model; NULL: the model is an ONNX file */
    int64_t classes;            /* number of classes of the weights; 0: the model's */
    const adj_tensors *weights; /* values by name */
    const input_file *source;   /* file of the weights */
    const adj_model_card *card; /* of the weights; without a model: unknown */
} onnx_network;

/* Writes the network in its form for inference. EXIT_OK, or an exit status after a complaint.
 * output: as for replace_output. */
int write_onnx(const output_file *out, FILE *output, const onnx_network *n);

#endif
