/* eval.c - adjoint eval: reads weights and prints the test accuracy. */
#include <stdio.h>

#include "cli/command.h"
#include "data.h"
#include "network.h"

typedef struct {
    const char *weights, *model, *backend;
    data_opts data;
    int64_t threads;
} eval_opts;

static int parse(eval_opts *o, int argc, char **argv)
{
    const option options[] = {
        {"--weights", "FILE", "a safetensors file written by train --out", .text = &o->weights},
        {"--model", "NAME", "default: what the file says", .text = &o->model},
        {"--data", "PATH", DATA_HELP, .text = &o->data.path},
        {"--backend", "NAME", "onednn (default) or naive", .text = &o->backend},
        {"--threads", "N", "default: OpenMP's", .integer = &o->threads, .range = {1, 1024}},
        {0},
    };
    option more[DATA_OPTIONS];
    list_data_options(&o->data, more);
    const usage u = {"eval", "Prints the test accuracy of weights in a file.", options, more};
    int status = parse_options(&u, argc, argv);
    if (status == CONTINUE && o->weights == NULL)
        return complain("eval", EXIT_USAGE, "--weights FILE is missing");
    return status;
}

static const char *model_of(const eval_opts *o, const adj_tensors *weights)
{
    const char *model = o->model != NULL ? o->model : adj_tensors_metadata(weights, "model");
    return model != NULL ? model : "lenet";
}

static int evaluate(const eval_opts *o, const adj_tensors *weights, const adj_dataset *test)
{
    network_opts options = {.model = model_of(o, weights),
                            .batch = test->n < EVAL_BATCH ? test->n : EVAL_BATCH,
                            .classes = test->classes,
                            .threads = o->threads,
                            .backend = o->backend};
    network n;
    tally t;
    adj_error error;

    int status = fit_model("eval", &o->data, options.model, test, &options.size);
    if (status != CONTINUE)
        return status;
    status = EXIT_OK;
    if (network_open(&n, &options) != ADJ_OK)
        status =
            complain("eval", n.m.model == NULL ? EXIT_USAGE : EXIT_FAILED, "%s", n.m.error.message);
    else if (adj_weights_set(n.exec, weights, &error) != ADJ_OK)
        status = complain("eval", EXIT_FAILED, "%s: %s", o->weights, error.message);
    else if (network_evaluate(&n, test, &t) != ADJ_OK)
        status = complain("eval", EXIT_FAILED, "%s", n.m.error.message);
    else
        say("%s on %s: test loss %.4f  test accuracy %.2f %% (%lld of %lld)", options.model,
            data_name(o->data.path), mean_loss(t), accuracy(t), (long long)t.right,
            (long long)t.count);
    network_close(&n);
    return status;
}

/* The training part has the classes, mean and deviation that the weights were made with. */
static int open_test(eval_opts *o, const adj_tensors *weights, adj_dataset **train,
                     adj_dataset **test)
{
    const char *model = model_of(o, weights);
    adj_dataset_part part = part_to_judge(&o->data);
    int status = CONTINUE;
    if (part == ADJ_VALIDATION || adj_dataset_has_part(o->data.path, ADJ_TRAIN))
        status = open_data("eval", &o->data, model, ADJ_TRAIN, NULL, train);
    return status == CONTINUE ? open_data("eval", &o->data, model, part, *train, test) : status;
}

int command_eval(int argc, char **argv)
{
    eval_opts o = {.data = data_defaults};
    int status = parse(&o, argc, argv);
    if (status != CONTINUE)
        return status;

    adj_tensors *weights = NULL;
    adj_dataset *test = NULL, *train = NULL;
    if (adj_tensors_read(o.weights, &weights) != ADJ_OK)
        status = complain("eval", EXIT_FAILED, "%s", adj_tensors_message(weights));
    if (status == CONTINUE)
        status = open_test(&o, weights, &train, &test);
    if (status == CONTINUE)
        status = evaluate(&o, weights, test);
    adj_dataset_free(test);
    adj_dataset_free(train);
    adj_tensors_free(weights);
    return status;
}
