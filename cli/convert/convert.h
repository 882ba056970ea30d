/* convert.h - adjoint convert: its options, and what a converted file holds beside its tensors:
 * metadata, or the network of an ONNX file. */
#ifndef CLI_CONVERT_H
#define CLI_CONVERT_H

#include "adjoint_io.h"
#include "adjoint_nn.h"
#include "cli/standard.h"

typedef struct {
    const char *files[2]; /* in, out */
    int n_file;
    const char *map, *model, *prefix, *tensor;
    const char *mean, *deviation; /* lists of numbers; NULL: as in IN */
    const char *format;           /* index into FORMAT_WORDS; NULL: by the name of OUT */
    int64_t to_theirs;
} convert_opts;

typedef enum { SAFETENSORS, NPZ, NPY, HEADER, ONNX, NO_FORMAT } format;
#define FORMAT_WORDS "safetensors npz npy h onnx"

/* Returns the format of OUT; NO_FORMAT if its name has an unknown ending. */
format format_of(const convert_opts *o);

/* Batch of a network's graph, which is symbolic in an ONNX file: a size that no other axis of a
 * first layer has. */
enum { ONNX_BATCH = 2 };

/* The net of the weights. */
typedef struct {
    adj_graph *graph;     /* NULL: of no built-in model */
    adj_node *logits;     /* logits of the graph */
    adj_model_card *said; /* model card of the file; NULL: no file */
    adj_model_card card;  /* model card to write, with the built-in model's name */
} weights_net;

/* Entries point into the tensors they were made from, or into card. */
typedef struct {
    int n;
    adj_metadata *entry;
    adj_metadata *card; /* one piece of memory, as adj_model_card_write makes it */
} metadata;

/* Makes the metadata of OUT for its tensors t: for another program's names without the original
 * program, for pytorch with format "pt"; for our names with the net's card, whose number of classes
 * follows from the tensors; as they are without --map and --mean. m is to be freed in every case.
 */
adj_status metadata_make(metadata *m, const convert_opts *o, const adj_tensors *t,
                         const weights_net *n, adj_error *error);
void metadata_free(metadata *m);

/* Writes the network in its form for inference, with these weights. EXIT_OK, or an exit status
 * after a complaint. output: as for replace_output. */
int write_onnx(const convert_opts *o, const input_file *in, const adj_tensors *weights,
               const weights_net *n, FILE *output);

#endif
