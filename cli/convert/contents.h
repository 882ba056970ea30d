/* contents.h - what a converted file holds beside its tensors: metadata, or the network of an ONNX
 * file. */
#ifndef CLI_CONVERT_CONTENTS_H
#define CLI_CONVERT_CONTENTS_H

#include "adjoint_io.h"
#include "cli/standard.h"

/* ---- metadata ---- */

/* Entries point into the tensors they were made from, or into card. */
typedef struct {
    int n;
    adj_metadata *entry;
    adj_metadata *card; /* one piece of memory, as adj_model_card_write makes it */
} metadata;

/* Copies the metadata of t. */
adj_status metadata_as_it_is(metadata *m, const adj_tensors *t, adj_error *error);
/* Copies the metadata of t for tensors with another program's names: without the original program,
 * for pytorch with format "pt". */
adj_status metadata_theirs(metadata *m, const adj_tensors *t, const char *map, adj_error *error);
/* Copies the metadata of t for tensors with our names, with the card of their net, which may have
 * no model; the number of classes follows from the tensors. */
adj_status metadata_ours(metadata *m, const adj_tensors *t, const adj_model_card *card,
                         adj_error *error);
void metadata_free(metadata *m);

/* ---- a network with its weights, written as an ONNX file ---- */

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
