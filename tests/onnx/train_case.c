/* train_case.c - MODEL INPUTS OUTPUTS TYPE: an imported network with the inputs x and dy. Writes
 * its outputs as imported for evaluation, and, as imported for training, the gradients of sum(y dy)
 * for every parameter, the running statistics after one step, and the weights after five steps of
 * SGD with momentum 0.9 on the mean. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_nn.h"
#include "adjoint_onnx.h"

enum { MAX = 512 };

static void stop(const char *what)
{
    printf("%s\n", what);
    exit(1);
}

static adj_tensor out[3 * MAX];
static int n_out;

static void keep(const char *prefix, const char *name, adj_exec *e, adj_node *n)
{
    char *full = malloc(strlen(prefix) + strlen(name) + 1);
    const adj_type t = adj_node_type(n);
    void *copy = malloc(adj_type_bytes(t) + 1);
    sprintf(full, "%s%s", prefix, name);
    if (adj_get(e, n, copy, adj_type_bytes(t)) != ADJ_OK)
        stop(adj_exec_message(e));
    out[n_out++] = (adj_tensor){full, (adj_elem)t.dtype, t.shape, copy};
}

static void set(adj_exec *e, adj_node *leaf, const adj_tensors *in, const char *name)
{
    const adj_tensor t = in->tensor[adj_tensors_find(in, name)];
    if (adj_set(e, leaf, t.data, (size_t)adj_tensor_bytes(&t)) != ADJ_OK)
        stop(adj_exec_message(e));
}

static adj_exec *plan(adj_graph *g, int n, adj_node *const fetch[], const adj_updates *u)
{
    const adj_exec_opts o = {.n_fetch = n, .fetch = fetch, .updates = u};
    adj_exec *e;
    if (adj_exec_new(g, &o, &e) != ADJ_OK)
        stop(adj_exec_message(e));
    return e;
}

static adj_onnx_net *load(const char *path, adj_dtype dtype, int training, int64_t batch,
                          adj_graph **g)
{
    adj_error error = {0};
    adj_onnx_net *net;
    const adj_onnx_opts o = {.dtype = dtype, .training = training, .batch = batch};
    *g = adj_graph_new();
    if (adj_onnx_load(*g, path, &o, &net, &error) != ADJ_OK)
        stop(error.message);
    return net;
}

int main(int n, char **args)
{
    adj_error error = {0};
    adj_tensors *in;
    const adj_dtype dtype = n > 4 && strcmp(args[4], "f64") == 0 ? ADJ_F64 : ADJ_F32;
    if (n < 4 || adj_tensors_read(args[2], &in) != ADJ_OK)
        stop("usage: train_case MODEL INPUTS OUTPUTS [TYPE [LEARNING_RATE]]");
    adj_graph *g;
    adj_onnx_net *net = load(args[1], dtype, 0, 4, &g);
    adj_exec *e = plan(g, 1, net->output, NULL);
    set(e, net->input[0], in, "x");
    if (adj_run(e) != ADJ_OK)
        stop(adj_exec_message(e));
    keep("eval", "", e, net->output[0]);

    net = load(args[1], dtype, 1, 4, &g);
    adj_node *y = net->output[0], *param[MAX], *grad[MAX];
    adj_node *dy = adj_input(g, "given_dy", adj_node_type(y).dtype, adj_node_type(y).shape);
    int n_param = 0;
    for (int i = 0; i < net->n_param; i++)
        if (adj_node_is_param(net->param[i]))
            param[n_param++] = net->param[i];
    if (adj_grad(y, dy, n_param, param, grad) != ADJ_OK)
        stop(adj_graph_message(g));
    e = plan(g, n_param, grad, adj_layer_updates(g));
    set(e, net->input[0], in, "x");
    set(e, dy, in, "dy");
    if (adj_run(e) != ADJ_OK)
        stop(adj_exec_message(e));
    for (int i = 0; i < n_param; i++)
        keep("grad/", adj_node_name(param[i]), e, grad[i]);
    for (int i = 0; i < net->n_param; i++)
        if (adj_node_is_state(net->param[i]))
            keep("stat/", adj_node_name(net->param[i]), e, net->param[i]);

    const adj_axes all = {.n = ADJ_ALL};
    adj_node *loss = adj_reduce_mean(adj_mul(y, dy), all);
    const adj_optimizer_opts sgd = {.lr = n > 5 ? atof(args[5]) : 0.1, .momentum = 0.9};
    e = plan(g, 1, &loss, adj_training_updates(loss, &sgd));
    set(e, net->input[0], in, "x");
    set(e, dy, in, "dy");
    for (int i = 0; i < 5; i++)
        if (adj_run(e) != ADJ_OK)
            stop(adj_exec_message(e));
    for (int i = 0; i < n_param; i++)
        keep("after/", adj_node_name(param[i]), e, param[i]);
    if (adj_tensors_write(args[3], n_out, out, 0, NULL, &error) != ADJ_OK)
        stop(error.message);
    return 0;
}
