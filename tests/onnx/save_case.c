/* save_case.c - MODEL FORMAT SAVED VALUES [fold]: a built-in model, or the model of an ONNX file,
 * for inference; writes it as ONNX, and its input x and output y of one run as safetensors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_nn.h"
#include "adjoint_onnx.h"

static void stop(const char *what)
{
    printf("%s\n", what);
    exit(1);
}

/* The net's result, and its input. */
static adj_node *build(adj_graph *g, const char *name, adj_format format, adj_node **x)
{
    adj_error error = {0};
    adj_onnx_net *net;
    adj_model_opts o = {.batch = 3, .format = format};
    if (strstr(name, ".onnx") == NULL) {
        adj_node *y = adj_model_logits(g, adj_model_find(name, &o), &o);
        *x = adj_find(g, "images");
        return y;
    }
    if (adj_onnx_load(g, name, &(adj_onnx_opts){.batch = 3}, &net, &error) != ADJ_OK)
        stop(error.message);
    adj_node *y = net->output[0];
    *x = net->input[0];
    adj_onnx_free(net);
    return y;
}

static void *numbers(int64_t n)
{
    float *v = malloc((size_t)n * sizeof *v);
    for (int64_t i = 0; i < n; i++)
        v[i] = (float)(i * 7919 % 1009) / 1009 - 0.4F;
    return v;
}

int main(int n, char **args)
{
    adj_error error = {0};
    adj_graph *g = adj_graph_new();
    adj_node *x, *y;
    adj_exec *e;
    if (n < 5)
        stop("usage: save_case MODEL nhwc|nchw SAVED VALUES [fold]");
    y = build(g, args[1], strcmp(args[2], "nchw") == 0 ? ADJ_NCHW : ADJ_NHWC, &x);
    if (y == NULL)
        stop(adj_graph_message(g));
    const adj_type tx = adj_node_type(x), ty = adj_node_type(y);
    float *data = numbers(adj_shape_elems(tx.shape));
    if (adj_exec_new(g, &(adj_exec_opts){.n_fetch = 1, .fetch = &y, .seed = 5}, &e) != ADJ_OK ||
        adj_set(e, x, data, adj_type_bytes(tx)) != ADJ_OK || adj_run(e) != ADJ_OK)
        stop(adj_exec_message(e));
    const adj_tensor out[] = {{"x", ADJ_ELEM_F32, tx.shape, data},
                              {"y", ADJ_ELEM_F32, ty.shape, adj_data(e, y)}};
    if (adj_tensors_write(args[4], 2, out, 0, NULL, &error) != ADJ_OK ||
        adj_onnx_save(e, 1, &y, args[3], n > 5 ? ADJ_ONNX_FOLD_BATCH_NORMS : 0, 0, NULL, &error) !=
            ADJ_OK)
        stop(error.message);
    adj_exec_free(e);
    adj_graph_free(g);
    return 0;
}
