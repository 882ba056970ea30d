/* adjoint_onnx.h - networks in ONNX files: imported as graphs that can be trained.
 *
 * adj_onnx_load adds the nodes of a file to a graph. Initializers become parameters under their
 * own names and start with the file's values, images stay NCHW, and every differentiable operator
 * has its gradient (adj_grad). A library of its own (libadjoint_onnx), over protobuf-c.
 *
 * Files are not trusted: sizes are checked in 64-bit arithmetic, nesting is limited, and external
 * data is read from the folder of the model only. */
#ifndef ADJOINT_ONNX_H
#define ADJOINT_ONNX_H

#include "adjoint.h"
#include "adjoint_io.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Size of a symbolic dimension. */
typedef struct {
    const char *name; /* name in the file, such as "height" */
    int64_t size;     /* 1 or more */
} adj_onnx_dim;

/* Options of adj_onnx_load. All zero is the default. */
typedef struct {
    int64_t batch; /* size of the first dimension of inputs; 0: the file's, or 1 if symbolic */
    /* Sizes of other symbolic dimensions, n_dim of them. */
    const adj_onnx_dim *dim;
    int n_dim; /* number of entries in dim */
    /* Sizes of the symbolic height h and width w of images, inputs of rank 4, that are not in dim;
     * 0: not known. Those of a given input are its node's. c is not read. */
    adj_image_size size;
    /* Type of values that are float in the file; default: ADJ_F32. In ADJ_F64, attributes and
     * constants are the decimal fractions, roots and inverses that they were rounded from, and
     * values computed from them while loading are not rounded. */
    adj_dtype dtype;
    /* 1: batch norms use the statistics of the batch and update their running ones
     * (adj_layer_updates); dropout is active. 0: neither, for files exported for training, too. */
    int training;
    /* n_given nodes that take the place of the first inputs. They belong to the graph and have the
     * inputs' shapes with these sizes of symbolic dimensions; floats are cast to the inputs' type.
     */
    adj_node *const *given;
    int n_given; /* number of entries in given */
    /* Inputs whose values are known while loading, such as the shape of a Reshape: n_known tensors
     * named after the inputs. These are not inputs of the graph. */
    const adj_tensor *known;
    int n_known; /* number of entries in known */
    /* Number of classes of a new last layer; 0: the file's layer. The weights and the bias of the
     * last Gemm, MatMul or Conv keep their names; the weights are initialized at random, the bias
     * with 0. */
    int64_t classes;
    /* Patterns (adj_trainable) of frozen parameters; NULL: none. With training, a batch norm whose
     * scale and bias match uses its running statistics and does not update them. */
    const char *freeze;
} adj_onnx_opts;

/* An imported network. Lists are in the file's order; the nodes belong to the graph. */
typedef struct {
    int n_input; /* number of inputs, without initializers and known ones, given ones included */
    adj_node **input;  /* the inputs */
    int n_output;      /* number of outputs */
    adj_node **output; /* the outputs */
    int n_param;       /* number of parameters and states (running statistics) */
    adj_node **param;  /* the parameters and states */
    int n_metadata;    /* number of metadata entries */
    /* The model's metadata, n_metadata entries that belong to the net. Those of a network that the
     * tool trained are a model card (adj_model_card_read). */
    const adj_metadata *metadata;
} adj_onnx_net;

/* Adds the network of a file to a graph. Operators of opset 7 and later are read, and those of
 * earlier opsets that have not changed since. The message lists all nodes that are not supported,
 * with name, operator, opset and the reason. On failure *net is NULL. options may be NULL.
 *
 * Executors start with the values of the file. Filters of convolutions of images become parameters
 * in adjoint's order of axes, [kh, kw, in, out]; all others keep the file's shapes. */
ADJ_API adj_status adj_onnx_load(adj_graph *g, const char *path, const adj_onnx_opts *options,
                                 adj_onnx_net **net, adj_error *error);
/* Flags of adj_onnx_save. */
enum {
    ADJ_ONNX_FIXED_BATCH =
        1, /* the batch has the graph's size; without: it is symbolic in the file */
    /* A batch norm that is the only reader of a convolution or matrix product becomes part of its
     * weights and bias. */
    ADJ_ONNX_FOLD_BATCH_NORMS = 2
};

/* Writes the nodes that compute n outputs, for inference, as an ONNX file of opset 17, replacing
 * the file: parameters and states with their values in e, an executor of the graph that needs them,
 * and n_metadata entries of metadata. NHWC images become NCHW, with transposes where an op needs
 * their order. ADJ_EARG, with the node's name, for nodes without an ONNX operator: batch statistics
 * and dropout of training, optimizer steps; and, without ADJ_ONNX_FIXED_BATCH, for operands of the
 * batch's size that are not computed from the inputs. */
ADJ_API adj_status adj_onnx_save(adj_exec *e, int n, adj_node *const output[], const char *path,
                                 unsigned flags, int n_metadata, const adj_metadata metadata[],
                                 adj_error *error);
/* Frees the lists and metadata; the graph keeps its nodes. */
ADJ_API void adj_onnx_free(adj_onnx_net *net);

#ifdef __cplusplus
}
#endif
#endif
