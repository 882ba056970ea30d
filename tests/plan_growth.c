/* plan_growth.c - KIND NODES: builds a graph of about so many nodes and plans it, for
 * test_plan_growth.sh, which counts instructions. KIND: chain (of tanh), fused (of scale and relu),
 * wide (products of one value, added up), train (convolutions with gradients and updates). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_nn.h"

static const adj_shape images = {4, {1, 4, 4, 8}};

static adj_node *chain(adj_node *y, int nodes, int is_fused)
{
    for (int i = 0; i < nodes; i++)
        y = !is_fused ? adj_tanh(y) : i % 2 ? adj_relu(y) : adj_scale(y, 1 + i);
    return y;
}

static adj_node *wide(adj_node *x, int nodes)
{
    adj_node **value = calloc((size_t)nodes, sizeof(adj_node *)), *sum = NULL;
    for (int i = 0; value != NULL && i < nodes / 2; i++)
        value[i] = adj_scale(x, 1 + i);
    for (int i = 0; value != NULL && i < nodes / 2; i++)
        sum = sum != NULL ? adj_add(sum, value[i]) : value[i];
    free(value);
    return sum;
}

static adj_node *train(adj_node *y, int nodes, adj_updates *updates)
{
    const int layers = nodes / 7;
    const adj_conv same = {.padding = ADJ_SAME};
    adj_graph *g = adj_node_graph(y);
    adj_node **w = calloc((size_t)layers, sizeof(adj_node *));
    adj_node **dw = calloc((size_t)layers, sizeof(adj_node *)), *loss = NULL;
    for (int i = 0; w != NULL && i < layers; i++) {
        char name[24];
        snprintf(name, sizeof name, "w%d", i);
        w[i] = adj_param(g, name, ADJ_F32, (adj_shape){4, {1, 1, 8, 8}}, adj_init_constant(1));
        y = adj_relu(adj_conv2d(y, w[i], &same));
    }
    if (w != NULL && dw != NULL) {
        loss = adj_reduce_mean(y, (adj_axes){.n = ADJ_ALL});
        adj_grad(loss, NULL, layers, w, dw);
        for (int i = 0; i < layers; i++)
            adj_updates_add(updates, w[i], adj_sub(w[i], dw[i]));
    }
    free(w);
    free(dw);
    return loss;
}

int main(int argc, char **argv)
{
    const char *kind = argc > 2 ? argv[1] : "";
    const int nodes = argc > 2 ? atoi(argv[2]) : 0;
    adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, images), *y;
    adj_updates *updates = adj_updates_new(g);
    adj_exec *e = NULL;
    y = strcmp(kind, "wide") == 0    ? wide(x, nodes)
        : strcmp(kind, "train") == 0 ? train(x, nodes, updates)
                                     : chain(x, nodes, strcmp(kind, "fused") == 0);
    const adj_exec_opts options = {.n_fetch = 1, .fetch = &y, .updates = updates, .threads = 1};
    const adj_status status = adj_exec_new(g, &options, &e);
    if (status != ADJ_OK)
        fprintf(stderr, "%s\n", e != NULL ? adj_exec_message(e) : "out of memory");
    adj_exec_free(e);
    adj_graph_free(g);
    return status != ADJ_OK;
}
