/* graph.c - see graph.h. */
#include <stdio.h>
#include <stdlib.h>

#include "graph.h"

static adj_status finish(compared *c, int64_t batch, int64_t classes)
{
    const adj_optimiser_opts momentum = {.kind = ADJ_SGD, .momentum = 0.9};
    adj_node *lr = adj_input(c->graph, "lr", ADJ_F32, (adj_shape){0});
    c->updates = adj_training_updates(c->root[0], lr, &momentum);
    adj_status status = adj_graph_status(c->graph);
    if (status != ADJ_OK) {
        snprintf(c->message, sizeof c->message, "%s", adj_graph_message(c->graph));
        return status;
    }
    c->label = calloc((size_t)batch, sizeof *c->label);
    if (c->label == NULL) {
        snprintf(c->message, sizeof c->message, "out of memory");
        return ADJ_ENOMEM;
    }
    for (int64_t i = 0; i < batch; i++)
        c->label[i] = (int32_t)(i * 7 % classes);
    return ADJ_OK;
}

/* The op in a graph of its own, with its gradients if it has any. */
static adj_status open_op(compared *c, const compared_opts *o, int with_gradients)
{
    c->n_root = 0;
    c->graph = adj_graph_new();
    adj_node *y = op_args_build(&o->op, c->graph, c->message, sizeof c->message);
    c->usage = y == NULL;
    if (y == NULL)
        return ADJ_EARG;
    c->root[c->n_root++] = y;
    adj_node *x[MAX_ROOTS], *dx[MAX_ROOTS];
    int n = 0;
    for (int k = 0; k < adj_node_operand_count(y) && with_gradients && n < MAX_ROOTS - 1; k++)
        if (adj_node_type(adj_node_operand_at(y, k)).dtype != ADJ_I32)
            x[n++] = adj_node_operand_at(y, k);
    if (n == 0 || adj_node_type(y).dtype == ADJ_I32)
        return ADJ_OK;
    adj_type t = adj_node_type(y);
    adj_status status = adj_grad(y, adj_input(c->graph, "dy", t.dtype, t.shape), n, x, dx);
    for (int k = 0; k < n && status == ADJ_OK; k++)
        c->root[c->n_root++] = dx[k];
    return status;
}

static adj_status only_node(compared *c, const compared_opts *o)
{
    adj_node *n = adj_graph_node_at(c->graph, (int)o->node);
    c->root[0] = n;
    c->updates = NULL;
    if (n != NULL && adj_node_operand_count(n) > 0)
        return ADJ_OK;
    c->usage = 1;
    snprintf(c->message, sizeof c->message,
             "--node: %s has nodes 0 to %d, some are leaves (got %lld)", o->model,
             adj_graph_node_count(c->graph) - 1, (long long)o->node);
    return ADJ_EARG;
}

adj_status compared_open(compared *c, const compared_opts *o)
{
    *c = (compared){0};
    if (o->op.op != NULL) {
        adj_status status = open_op(c, o, 1);
        if (status == ADJ_OK || c->usage)
            return status;
        adj_graph_free(c->graph); /* no gradient: the op alone */
        return open_op(c, o, 0);
    }
    adj_model_opts options = {.training = 1};
    const adj_model *model = adj_model_find(o->model, &options);
    if (model == NULL) {
        c->usage = 1;
        snprintf(c->message, sizeof c->message, "unknown model %s (did you mean %s?)", o->model,
                 adj_model_nearest(o->model)->name);
        return ADJ_EARG;
    }
    options.batch = o->batch;
    if (o->height > 0)
        options.height = o->height;
    if (o->width > 0)
        options.width = o->width;
    c->graph = adj_graph_new();
    adj_node *logits = c->graph != NULL ? adj_model_logits(c->graph, model, &options) : NULL;
    if (logits == NULL) {
        snprintf(c->message, sizeof c->message, "%s", adj_graph_message(c->graph));
        return adj_graph_status(c->graph);
    }
    c->labels = adj_input(c->graph, "labels", ADJ_I32, (adj_shape){1, {o->batch}});
    c->root[c->n_root++] = adj_loss_softmax(logits, c->labels);
    adj_status status = finish(c, o->batch, model->classes);
    return status == ADJ_OK && o->node >= 0 ? only_node(c, o) : status;
}

void compared_close(compared *c)
{
    free(c->label);
    adj_graph_free(c->graph);
}
