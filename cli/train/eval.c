/* eval.c - adjoint eval: reads weights and prints the test accuracy. */
#include "adjoint_fit.h"
#include "cli/command.h"
#include "data.h"
#include "train.h"

typedef struct {
    const char *weights, *map, *model, *data, *backend;
    int64_t threads;
} eval_opts;

static int parse(eval_opts *o, int argc, char **argv)
{
    const option options[] = {
        {"--weights", "FILE", "a safetensors file written by train --out", .text = &o->weights},
        {"--model", "NAME", "default: what the file says", .text = &o->model},
        {"--map", "NAME", "whose names the weights have: pytorch, keras or a map file",
         .text = &o->map},
        {"--data", "DIR", "MNIST's files; default: the drawn digits", .text = &o->data},
        {"--backend", "NAME", "onednn (default) or naive", .text = &o->backend},
        {"--threads", "N", "default: OpenMP's", .integer = &o->threads, .range = {1, 1024}},
        {0},
    };
    const usage u = {"eval", "Prints the test accuracy of weights in a file.", options, NULL};
    int status = parse_options(&u, argc, argv);
    if (status == CONTINUE && o->weights == NULL)
        return complain("eval", EXIT_USAGE, "--weights FILE is missing");
    if (status == CONTINUE && o->model != NULL)
        return check_model("eval", o->model);
    return status;
}

static int evaluate(const eval_opts *o, const adj_dataset *test)
{
    const adj_net net = {.name = o->model};
    const adj_weights_opts load = {.map = o->map};
    const adj_predictor_opts options = {
        .backend = o->backend, .threads = (int)o->threads, .weights = &load};
    adj_predictor *p = NULL;
    adj_score s;
    adj_error error = {0};

    if (adj_predictor_load(o->weights, &net, &options, &p, &error) != ADJ_OK)
        return complain("eval", EXIT_FAILED, "%s", error.message);
    int status = EXIT_OK;
    if (adj_predictor_evaluate(p, test, &s, NULL, &error) != ADJ_OK)
        status = complain("eval", EXIT_FAILED, "%s: %s", o->weights, error.message);
    else
        say("%s on %s: test loss %.4f  test accuracy %.2f %% (%lld of %lld)",
            adj_predictor_card(p)->model, data_name(o->data), s.loss, 100 * s.accuracy,
            (long long)s.right, (long long)s.count);
    adj_predictor_free(p);
    return status;
}

int command_eval(int argc, char **argv)
{
    eval_opts o = {0};
    adj_dataset *test = NULL;
    int status = parse(&o, argc, argv);
    if (status == CONTINUE)
        status = open_data("eval", o.data, ADJ_TEST, &test);
    if (status == CONTINUE)
        status = evaluate(&o, test);
    adj_dataset_free(test);
    return status;
}
