/* compare_graph.c - see compare_graph.h. */
#include <stdio.h>
#include <stdlib.h>

#include "compare_graph.h"

static adj_status finish(compared *c, int64_t batch, int64_t classes)
{
    const adj_optimiser_opts momentum = {.kind = ADJ_SGD, .momentum = 0.9};
    adj_node *lr = adj_input(c->graph, "lr", ADJ_F32, (adj_shape){0});
    c->updates = adj_training_updates(c->loss, lr, &momentum);
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

adj_status compared_open(compared *c, const compared_opts *o)
{
    *c = (compared){0};
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
    c->loss = adj_loss_softmax(logits, c->labels);
    return finish(c, o->batch, model->classes);
}

void compared_close(compared *c)
{
    free(c->label);
    adj_graph_free(c->graph);
}
