/* model_text.h - ONNX models for tests, written in a part of ONNX's text syntax. */
#ifndef TESTS_ONNX_MODEL_TEXT_H
#define TESTS_ONNX_MODEL_TEXT_H

#include <stdint.h>

#include <onnx.pb-c.h>

/* Makes a model of one graph, such as
 *
 *   (float[batch,3] x) => (y) <float[3] b = {1, 2, 3}, float[3,3] w>
 *   { u = MatMul (x, w)  v = Add (u, b)  y = Softmax <axis = 1> (v) }
 *
 * with inputs, outputs, initializers and nodes. Element types are float, float16 (values are its
 * bits), int8, int64 and string; initializers without values are 0. An attribute is an integer, a
 * float (with a point), a list of integers in brackets, a word, or a graph. An operand may be
 * missing, as in Clip (x, , high). A node has the name of its first result. */
Onnx__ModelProto *model_of(int64_t opset, const char *text);
/* Makes the model of a text that printf makes. */
Onnx__ModelProto *model_with(int64_t opset, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The text of the last model, for messages. */
const char *model_source(void);
Onnx__TensorProto *initializer_of(const Onnx__ModelProto *m, const char *name);
/* Writes the model, and frees it. */
void write_model(Onnx__ModelProto *m, const char *path);

#endif
