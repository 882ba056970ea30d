/* fuzz_onnx.c - any bytes as an ONNX file: it is imported, with its gradient, or refused with a
 * message. */
#include "adjoint_onnx.h"
#include "fuzz/memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void differentiate(const adj_onnx_net *net)
{
    adj_node *grad[8], *param[8];
    int n = 0;
    for (int i = 0; i < net->n_param && n < 8; i++)
        if (adj_node_is_param(net->param[i]))
            param[n++] = net->param[i];
    if (net->n_output > 0 && n > 0)
        adj_grad(adj_reduce_sum(net->output[0], (adj_axes){.n = ADJ_ALL}), NULL, n, param, grad);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const memory_file f = memory_file_new(data, size);
    adj_graph *g = adj_graph_new();
    adj_onnx_net *net = NULL;
    adj_error error = {0};
    const adj_onnx_opts o = {
        .batch = 2, .training = size % 2, .classes = size % 3 == 0 ? 5 : 0, .freeze = "*1*"};
    const adj_status status = adj_onnx_load(g, f.path, &o, &net, &error);
    if ((status == ADJ_OK) != (net != NULL) || (status != ADJ_OK && error.message[0] == '\0'))
        abort();
    if (net != NULL)
        differentiate(net);
    adj_onnx_free(net);
    adj_graph_free(g);
    memory_file_free(&f);
    return 0;
}
