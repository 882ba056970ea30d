/* eval.c - adjoint eval: reads weights and prints the test accuracy. */
#include <stdlib.h>

#include "cli/command.h"
#include "network.h"

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
    const usage u = {.command = "eval",
                     .summary = "Prints the test accuracy of weights in a file.",
                     .options = options};
    int status = parse_options(&u, argc, argv);
    if (status == CONTINUE && o->weights == NULL)
        return complain("eval", EXIT_USAGE, "--weights FILE is missing");
    return status;
}

/* The net that the card and the options describe; classes and channels are the data's where the
 * card leaves them out. */
static network_opts net_of(const eval_opts *o, const adj_model_card *card, const adj_dataset *test)
{
    return (network_opts){.model = o->model != NULL ? o->model : card->model,
                          .batch = test->n < EVAL_BATCH ? test->n : EVAL_BATCH,
                          .classes = card->classes > 0 ? card->classes : test->classes,
                          .height = card->height,
                          .width = card->width,
                          .channels = card->channels,
                          .multiplier = card->multiplier,
                          .threads = o->threads,
                          .backend = o->backend};
}

/* The data normalised as the net was trained. */
static adj_dataset normalised(const adj_dataset *test, const adj_model_card *card)
{
    adj_dataset d = *test;
    for (int64_t i = 0; i < d.c && i < card->channels && card->deviation[0] > 0; i++) {
        d.mean[i] = (float)card->mean[i];
        d.deviation[i] = (float)card->deviation[i];
    }
    return d;
}

static int evaluate(const eval_opts *o, const adj_tensors *weights, const adj_model_card *card,
                    const adj_dataset *test)
{
    network_opts options = net_of(o, card, test);
    const adj_weights_opts load = {.map = o->map};
    const adj_dataset data = normalised(test, card);
    network n = {0};
    tally t;
    adj_error error;
    int status = EXIT_OK;

    if (options.model == NULL)
        return complain("eval", EXIT_USAGE, "--model NAME is missing: %s does not say it",
                        o->weights);
    if (adj_model_card_check(card, test->c, test->classes, test->class_names, &error) != ADJ_OK)
        return complain("eval", EXIT_FAILED, "%s: %s", o->weights, error.message);
    if (network_open(&n, &options) != ADJ_OK)
        status =
            complain("eval", n.m.model == NULL ? EXIT_USAGE : EXIT_FAILED, "%s", n.m.error.message);
    else if (adj_weights_set_with(n.exec, weights, &load, &error) != ADJ_OK)
        status = complain("eval", EXIT_FAILED, "%s: %s", o->weights, error.message);
    else if (network_evaluate(&n, &data, &t) != ADJ_OK)
        status = complain("eval", EXIT_FAILED, "%s", n.m.error.message);
    else
        say("%s on %s: test loss %.4f  test accuracy %.2f %% (%lld of %lld)", options.model,
            data_name(o->data), mean_loss(t), accuracy(t), (long long)t.right, (long long)t.count);
    network_close(&n);
    return status;
}

int command_eval(int argc, char **argv)
{
    eval_opts o = {0};
    int status = parse(&o, argc, argv);
    if (status != CONTINUE)
        return status;

    adj_tensors *weights = NULL;
    adj_model_card *card = NULL;
    adj_dataset *test = NULL;
    adj_error error;
    if (adj_tensors_read(o.weights, &weights) != ADJ_OK)
        status = complain("eval", EXIT_FAILED, "%s", adj_tensors_message(weights));
    if (status == CONTINUE && adj_model_card_read(weights, &card, &error) != ADJ_OK)
        status = complain("eval", EXIT_FAILED, "%s: %s", o.weights, error.message);
    if (status == CONTINUE)
        status = open_data("eval", o.data, ADJ_TEST, &test);
    if (status == CONTINUE)
        status = evaluate(&o, weights, card, test);
    adj_dataset_free(test);
    free(card);
    adj_tensors_free(weights);
    return status;
}
