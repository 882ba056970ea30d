/* model.c - see model.h; and adjoint models: what can be trained, with the number of trainable
 * parameters. */
#include <stdio.h>
#include <stdlib.h>

#include "command.h"
#include "model.h"

const adj_optimiser_opts model_momentum = {.kind = ADJ_SGD, .momentum = 0.9};

/* The optimizer's updates of what the patterns do not freeze. */
static adj_status add_updates(model_graph *m, const adj_optimiser_opts *optimizer,
                              const char *freeze)
{
    adj_optimiser_opts o = *optimizer;
    int all = adj_trainable(m->loss, 0, NULL);
    adj_node **trained = calloc((size_t)(all > 0 ? all : 0) + 1, sizeof(adj_node *));
    adj_status status = ADJ_OK;

    if (all < 0 || trained == NULL)
        status = adj_error_set(&m->error, ADJ_ENOMEM, "out of memory");
    if (status == ADJ_OK && freeze != NULL) {
        o.trained = trained;
        o.n_trained = adj_trainable_except(m->loss, freeze, all, trained);
        m->frozen = all - o.n_trained;
        if (m->frozen == 0 || o.n_trained == 0)
            status = adj_error_set(&m->error, ADJ_EARG, "--freeze %.200s: matches %s parameter",
                                   freeze, m->frozen == 0 ? "no" : "every");
    }
    if (status == ADJ_OK)
        m->updates = adj_training_updates(m->loss, m->lr, &o);
    free(trained);
    return status;
}

adj_status model_build(model_graph *m, adj_graph *g, const char *name,
                       const adj_model_opts *options, const adj_optimiser_opts *optimizer)
{
    adj_model_opts o = *options;
    *m = (model_graph){.model = adj_model_find(name, &o), .graph = g};
    if (m->model == NULL)
        return adj_error_set(&m->error, ADJ_EARG,
                             "unknown model %.200s (did you mean %s?), adjoint models lists them",
                             name, adj_model_nearest(name)->name);
    o.height = options->height > 0 ? options->height : o.height;
    o.width = options->width > 0 ? options->width : o.width;
    m->logits = g != NULL ? adj_model_logits(g, m->model, &o) : NULL;
    if (m->logits != NULL) {
        m->images = adj_find(g, "images");
        m->labels = adj_input(g, "labels", ADJ_I32, (adj_shape){1, {o.batch}});
        m->loss = adj_loss_softmax(m->logits, m->labels);
    }
    if (m->loss != NULL && optimizer != NULL) {
        m->lr = adj_input(g, "lr", ADJ_F32, (adj_shape){0});
        adj_status status = add_updates(m, optimizer, options->freeze);
        if (status != ADJ_OK)
            return status;
    }
    adj_status status = adj_graph_status(g);
    return status == ADJ_OK ? ADJ_OK : adj_error_set(&m->error, status, "%s", adj_graph_message(g));
}

int32_t *model_labels(const model_graph *m)
{
    int64_t batch = adj_shape_elems(adj_node_type(m->labels).shape);
    int32_t *label = calloc((size_t)batch + 1, sizeof *label);
    for (int64_t i = 0; i < batch && label != NULL; i++)
        label[i] = (int32_t)(i * 7 % m->model->classes);
    return label;
}

/* ---- adjoint models ---- */

static int print_model(const adj_model *m)
{
    adj_graph *g = adj_graph_new();
    adj_node *logits = g != NULL ? adj_model_logits(g, m, &(adj_model_opts){.training = 1}) : NULL;
    int status = EXIT_OK;

    if (logits == NULL)
        status = complain("models", EXIT_FAILED, "%s: %s", m->name, adj_graph_message(g));
    else
        printf("%-14s %9lld parameters  %2lldx%2lldx%lld  %2lld classes  %s\n", m->name,
               (long long)adj_trainable_elems(logits), (long long)m->height, (long long)m->width,
               (long long)m->channels, (long long)m->classes, m->summary);
    adj_graph_free(g);
    return status;
}

int command_models(int argc, char **argv)
{
    static const usage u = {.command = "models", .summary = "Lists the models."};
    int status = parse_options(&u, argc, argv);

    if (status != CONTINUE)
        return status;
    status = EXIT_OK;
    for (int i = 0; adj_model_at(i) != NULL && status == EXIT_OK; i++)
        status = print_model(adj_model_at(i));
    return status;
}
