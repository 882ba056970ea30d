/* summary.c - adjoint summary: a table of a model's layers. */
#include "cli/command.h"
#include "cli/model.h"

static int summarize(const char *model)
{
    model_graph m;
    adj_graph *g = adj_graph_new();
    int status = EXIT_OK;
    if (model_build(&m, g, model, &(adj_model_opts){0}, NULL) == ADJ_OK)
        adj_summary(stdout, m.logits);
    else
        status = complain("summary", m.is_known ? EXIT_FAILED : EXIT_USAGE, "%s", m.error.message);
    adj_graph_free(g);
    return status;
}

int command_summary(int argc, char **argv)
{
    const char *model = NULL;
    const option options[] = {{"--model", "NAME", "model, see adjoint models, or an ONNX file",
                               .text = &model, .names = model_name_at},
                              {0}};
    const remark examples[] = {
        {"adjoint summary --model resnet8", "Layers, shapes, parameters and multiply-adds."},
        {NULL, NULL}};
    const usage u = {
        .command = "summary",
        .summary =
            "Prints a table of a model's layers: op, shape of the result for a batch of 1, number "
            "of parameters, multiply-adds.",
        .options = options,
        .examples = examples};
    const int status = parse_options(&u, argc, argv);
    if (status != CONTINUE)
        return status;
    return model != NULL ? summarize(model)
                         : complain("summary", EXIT_USAGE, "--model NAME is missing");
}
