/* models.c - adjoint models: what can be trained, with the number of trainable parameters. */
#include <stdio.h>

#include "adjoint_nn.h"
#include "command.h"

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
