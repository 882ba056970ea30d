/* model_maker.h - ONNX models for tests, made message by message and written to a file. */
#ifndef TESTS_ONNX_MODEL_MAKER_H
#define TESTS_ONNX_MODEL_MAKER_H

#include <stdint.h>

#include <onnx.pb-c.h>

/* A model of one graph, with room for a few messages of each kind. */
typedef struct {
    Onnx__ModelProto model;
    Onnx__GraphProto graph;
    Onnx__OperatorSetIdProto opset, *opsets[1];
    Onnx__NodeProto node[8], *nodes[8];
    Onnx__AttributeProto attribute[16], *attributes[16];
    Onnx__TensorProto tensor[8], *tensors[8];
    Onnx__ValueInfoProto info[8], *inputs[4], *outputs[4];
    Onnx__TypeProto type[8];
    Onnx__TypeProto__Tensor of[8];
    Onnx__TensorShapeProto shape[8];
    Onnx__TensorShapeProto__Dimension dim[32], *dims[32];
    char *names[64];
    int n_attribute, n_info, n_dim, n_name;
} maker;

/* Starts an empty model of that opset. */
void maker_start(maker *m, int64_t opset);
/* Adds an input or output of floats; a size of -1 is the symbolic "batch". */
void maker_input(maker *m, const char *name, int rank, const int64_t sizes[]);
void maker_output(maker *m, const char *name);
/* A model with the input "x" and the output "y". */
void maker_x_to_y(maker *m, int64_t opset, int rank, const int64_t sizes[]);
/* Adds an initializer whose values and sizes stay the caller's. */
Onnx__TensorProto *maker_floats(maker *m, const char *name, int rank, int64_t sizes[],
                                float values[]);
Onnx__TensorProto *maker_ints(maker *m, const char *name, int64_t n, int64_t *count,
                              int64_t values[]);
/* Adds a node; names are separated by spaces. */
Onnx__NodeProto *maker_node(maker *m, const char *op, const char *inputs, const char *outputs);
/* Adds an attribute to the last node. */
Onnx__AttributeProto *maker_int(maker *m, const char *name, int64_t value);
Onnx__AttributeProto *maker_float(maker *m, const char *name, float value);
Onnx__AttributeProto *maker_word(maker *m, const char *name, const char *value);
Onnx__AttributeProto *maker_list(maker *m, const char *name, int n, int64_t values[]);
/* Writes the model. */
void maker_write(const maker *m, const char *path);

#endif
