/* eval.c - adjoint eval: reads weights and prints the test accuracy. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "data.h"
#include "network.h"

typedef struct {
    const char *weights, *map, *model, *backend;
    data_opts data;
    int64_t threads;
} eval_opts;

static int parse(eval_opts *o, int argc, char **argv)
{
    const option options[] = {
        {"--weights", "FILE", "a safetensors file written by train --out", .text = &o->weights},
        {"--model", "NAME", "default: what the file says", .text = &o->model},
        {"--map", "NAME", "whose names the weights have: pytorch, keras or a map file",
         .text = &o->map},
        {"--data", "PATH", DATA_HELP, .text = &o->data.path},
        {"--backend", "NAME", "onednn (default) or naive", .text = &o->backend},
        {"--threads", "N", "default: OpenMP's", .integer = &o->threads, .range = {1, 1024}},
        {0},
    };
    option more[DATA_OPTIONS];
    list_data_options(&o->data, more);
    const usage u = {.command = "eval",
                     .summary = "Prints the test accuracy of weights in a file.",
                     .options = options,
                     .more = more};
    int status = parse_options(&u, argc, argv);
    if (status == CONTINUE && o->weights == NULL)
        return complain("eval", EXIT_USAGE, "--weights FILE is missing");
    return status;
}

static const char *model_of(const eval_opts *o, const adj_model_card *card)
{
    return o->model != NULL ? o->model : card->model;
}

/* The net that the card describes; what it leaves out is the data's. CONTINUE or an exit status. */
static int net_of(const eval_opts *o, const adj_model_card *card, const adj_dataset *test,
                  network_opts *net)
{
    *net = (network_opts){.model = model_of(o, card),
                          .batch = test->n < EVAL_BATCH ? test->n : EVAL_BATCH,
                          .classes = card->classes > 0 ? card->classes : test->classes,
                          .threads = o->threads,
                          .backend = o->backend};
    int status = fit_model("eval", &o->data, net->model, test, &net->size);
    if (card->height > 0) {
        net->size.height = card->height;
        net->size.width = card->width;
        net->size.channels = card->channels;
    }
    net->size.multiplier = card->multiplier;
    return status;
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
    network_opts options;
    const adj_weights_opts load = {.map = o->map};
    const adj_dataset data = normalised(test, card);
    network n = {0};
    tally t;
    adj_error error;

    if (adj_model_card_check(card, test->c, test->classes, test->class_names, &error) != ADJ_OK)
        return complain("eval", EXIT_FAILED, "%s: %s", o->weights, error.message);
    int status = net_of(o, card, test, &options);
    if (status != CONTINUE)
        return status;
    status = EXIT_OK;
    if (network_open(&n, &options) != ADJ_OK)
        status =
            complain("eval", n.m.model == NULL ? EXIT_USAGE : EXIT_FAILED, "%s", n.m.error.message);
    else if (adj_weights_set_with(n.exec, weights, &load, &error) != ADJ_OK)
        status = complain("eval", EXIT_FAILED, "%s: %s", o->weights, error.message);
    else if (network_evaluate(&n, &data, &t) != ADJ_OK)
        status = complain("eval", EXIT_FAILED, "%s", n.m.error.message);
    else
        say("%s on %s: test loss %.4f  test accuracy %.2f %% (%lld of %lld)", options.model,
            data_name(o->data.path), mean_loss(t), accuracy(t), (long long)t.right,
            (long long)t.count);
    network_close(&n);
    return status;
}

enum { SIZE_TEXT = 48 };

/* A net of another size than the model's own was trained with --size. CONTINUE, or an exit status:
 * nothing says which model it is. */
static int take_card(eval_opts *o, const adj_model_card *card, char size[SIZE_TEXT])
{
    const adj_model *m = adj_model_find(model_of(o, card), NULL);

    if (model_of(o, card) == NULL)
        return complain("eval", EXIT_USAGE, "--model NAME is missing: %s does not say it",
                        o->weights);
    if (m != NULL && card->height > 0 && strcmp(o->data.size, data_defaults.size) == 0 &&
        (card->height != m->height || card->width != m->width)) {
        snprintf(size, SIZE_TEXT, "%lldx%lld", (long long)card->height, (long long)card->width);
        o->data.size = size;
    }
    return CONTINUE;
}

/* The training part has the classes, mean and deviation that the weights were made with. */
static int open_test(eval_opts *o, const adj_model_card *card, adj_dataset **train,
                     adj_dataset **test)
{
    const char *model = model_of(o, card);
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
    adj_model_card *card = NULL;
    adj_dataset *test = NULL, *train = NULL;
    adj_error error;
    char size[SIZE_TEXT];
    if (adj_tensors_read(o.weights, &weights) != ADJ_OK)
        status = complain("eval", EXIT_FAILED, "%s", adj_tensors_message(weights));
    if (status == CONTINUE && adj_model_card_read(weights, &card, &error) != ADJ_OK)
        status = complain("eval", EXIT_FAILED, "%s: %s", o.weights, error.message);
    if (status == CONTINUE)
        status = take_card(&o, card, size);
    if (status == CONTINUE)
        status = open_test(&o, card, &train, &test);
    if (status == CONTINUE)
        status = evaluate(&o, weights, card, test);
    adj_dataset_free(test);
    free(card);
    adj_dataset_free(train);
    adj_tensors_free(weights);
    return status;
}
