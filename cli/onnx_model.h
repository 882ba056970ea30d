/* onnx_model.h - the network of an ONNX file where a built-in model may be named. */
#ifndef CLI_ONNX_MODEL_H
#define CLI_ONNX_MODEL_H

#include "adjoint_fit.h"
#include "standard.h"

/* True if the name is that of an ONNX file, by its ending. */
int is_onnx_file(const char *name);
/* Returns the name of the file without folders, which is that of its net. */
const char *onnx_name(const char *path);
/* Returns the node before a softmax that y ends in, which losses and probabilities add themselves;
 * y if it does not end in one. */
adj_node *before_softmax(adj_node *y);
/* Sets format, height, width, channels and classes to those of the file's network; a symbolic
 * height or width is the one that sizes has. The network has one input
 * [batch, channels, height, width], or [batch, height, width, channels] if the second axis is too
 * long for channels and the last is not; and one output [batch, classes]. */
adj_status onnx_sizes(const char *path, adj_model_opts *sizes, adj_error *error);

/* Opens an ONNX file as a file of tensors: parameters and states of its net, and as metadata opset,
 * inputs and outputs; or instead, with a card, the model card of a classifier. CONTINUE, or an exit
 * status after a complaint. */
int open_onnx(input_file *file, int with_card);

/* Opens the files of --weights and --map. Without weights the ONNX file --model stands for them:
 * opens it with its card. CONTINUE, or an exit status after a complaint. */
int open_weights(const char *model, input_file in[2]);

enum { ONNX_NAME = 160 };
/* The file of a net, and how training changes it. */
typedef struct {
    const char *path;
    int64_t classes;         /* number of classes of the file's net */
    adj_format format;       /* format of its images */
    int new_head;            /* 1: the last layer is new, for the same number of classes, too */
    const char *freeze;      /* patterns of frozen parameters; NULL: none */
    int n_folded;            /* batch norms that the exporter folded, once it is built */
    char head[2][ONNX_NAME]; /* parameters of the new last layer once it is built; "": none */
} onnx_source;
/* The weights of a net as options name them, and how it is computed. */
typedef struct {
    const char *weights, *map, *model; /* --weights, else of the ONNX file --model; --map */
    adj_exec_opts exec;
    onnx_source source; /* memory of the predictor */
} named_weights;
/* Opens the weights as a predictor, to be freed, with notes on what the file does not say. Sets
 * w->weights to the file's name. CONTINUE, or an exit status after a complaint. */
int open_predictor(named_weights *w, adj_predictor **p);

/* Sets *net to that of the name: a built-in model, or that of an ONNX file, whose name without
 * folders is the net's. size: of a symbolic height and width, 0: not known. For another number of
 * classes than the file's the last layer is new. model and *source, which it sets, must outlive the
 * net. */
adj_status net_named(const char *model, adj_image_size size, onnx_source *source, adj_net *net,
                     adj_error *error);

#endif
