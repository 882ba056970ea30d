/* eval.c - adjoint eval: reads weights and prints the test accuracy. */
#include <stdio.h>
#include <string.h>

#include "adjoint_fit.h"
#include "cli/cache.h"
#include "cli/command.h"
#include "cli/standard.h"
#include "data.h"
#include "cli/model.h"
#include "train.h"

typedef struct {
    data_opts data;
    const char *weights, *map, *model, *backend, *yield;
    int64_t threads, no_tune;
    char cache[CACHE_PATH];
    char size[48]; /* of the card's images, as an option */
} eval_opts;

static int parse(eval_opts *o, int argc, char **argv)
{
    const option options[] = {
        {"--weights", "FILE", "weights, safetensors or .npz; - is standard input",
         .text = &o->weights},
        {"--model", "NAME", "one of adjoint models; default: what the file says", .text = &o->model,
         .names = model_name_at},
        {"--map", "NAME", "whose names the weights have: pytorch, keras or a map file",
         .text = &o->map},
        {"--data", "PATH", DATA_HELP, .text = &o->data.path},
        {"--backend", "NAME", BACKEND_HELP, .text = &o->backend, .names = backend_name_at},
        {"--threads", "N", THREADS_HELP, .integer = &o->threads, .range = {1, 1024}},
        {"--yield", "MODE", YIELD_HELP, .text = &o->yield, .words = YIELD_WORDS},
        {"--no-tune", "",
         "times no kernels; default: up to 2 s, and no more than 2 % of the run, look for the "
         "fastest",
         .flag = &o->no_tune},
        {0},
    };
    option more[DATA_OPTIONS];
    list_data_options(&o->data, more);
    const remark examples[] = {
        {"adjoint eval --weights lenet.safetensors --data mnist",
         "Of what adjoint train wrote, on the test images in the folder mnist."},
        {NULL, NULL}};
    const usage u = {.command = "eval",
                     .summary = "Prints the test accuracy of weights in a file.",
                     .options = options,
                     .more = more,
                     .variables = TUNED_VARIABLES,
                     .examples = examples};
    int status = parse_options(&u, argc, argv);
    if (status == CONTINUE && o->weights == NULL)
        return complain("eval", EXIT_USAGE, "--weights FILE is missing");
    if (status == CONTINUE && o->model != NULL)
        return check_model("eval", o->model);
    return status;
}

/* Whether the net takes images of its model's size. */
static int has_own_size(const adj_model_card *card)
{
    adj_model_opts o = {0};
    const adj_model *m = adj_model_find(card->model, &o);
    return m == NULL || (card->height == (o.height > 0 ? o.height : m->height) &&
                         card->width == (o.width > 0 ? o.width : m->width));
}

/* The data as the net was trained on them. The training part has the classes, and where the file
 * does not say them, mean and deviation. */
static int open_test(eval_opts *o, const adj_model_card *card, adj_dataset **train,
                     adj_dataset **test)
{
    adj_model_opts fitted = {0};
    if (strcmp(o->data.size, data_defaults.size) == 0 && !has_own_size(card)) {
        snprintf(o->size, sizeof o->size, "%lldx%lld", (long long)card->height,
                 (long long)card->width);
        o->data.size = o->size;
    }
    adj_dataset_part part = part_to_judge(&o->data);
    int status = CONTINUE;
    if (part == ADJ_VALIDATION || adj_dataset_has_part(o->data.path, ADJ_TRAIN))
        status = open_data("eval", &o->data, card->model, ADJ_TRAIN, NULL, train);
    if (status == CONTINUE)
        status = open_data("eval", &o->data, card->model, part, *train, test);
    return status == CONTINUE ? fit_model("eval", &o->data, card->model, *test, &fitted) : status;
}

static int evaluate(const eval_opts *o, adj_predictor *p, const adj_dataset *test)
{
    adj_score s;
    adj_error error = {0};

    if (adj_predictor_evaluate(p, test, &s, NULL, &error) != ADJ_OK)
        return complain("eval", EXIT_FAILED, "%s: %s", o->weights, error.message);
    say("%s on %s: test loss %.4f  test accuracy %.2f %% (%lld of %lld)",
        adj_predictor_card(p)->model, data_name(o->data.path), s.loss, 100 * s.accuracy,
        (long long)s.right, (long long)s.count);
    return EXIT_OK;
}

int command_eval(int argc, char **argv)
{
    eval_opts o = {.data = data_defaults, .yield = "same-bits"};
    adj_dataset *test = NULL, *train = NULL;
    adj_predictor *p = NULL;
    adj_error error = {0};
    int status = parse(&o, argc, argv);
    if (status != CONTINUE)
        return status;

    input_file in[] = {{.option = "--weights", .path = o.weights},
                       {.option = "--map", .path = o.map}};
    char text[ADJ_MESSAGE];
    status = open_inputs("eval", 2, in);
    if (status != CONTINUE)
        return status;
    const adj_net net = {.name = o.model};
    const adj_weights_opts load = {.map = in[1].name};
    const adj_predictor_opts options = {.backend = o.backend,
                                        .threads = (int)o.threads,
                                        .tune = !o.no_tune && !tuning_is_off(),
                                        .tune_file = tune_cache(o.cache),
                                        .tune_seconds = DEFAULT_TUNE_SECONDS,
                                        .yield = (adj_yield)word_index(YIELD_WORDS, o.yield),
                                        .weights = &load};
    if (adj_predictor_load(in[0].name, &net, &options, &p, &error) != ADJ_OK)
        return complain("eval", EXIT_FAILED, "%s%s", with_words(2, in, error.message, text),
                        error.status == ADJ_EARG && o.model == NULL ? " (--model NAME does)" : "");
    status = open_test(&o, adj_predictor_card(p), &train, &test);
    if (status == CONTINUE)
        status = evaluate(&o, p, test);
    adj_dataset_free(test);
    adj_dataset_free(train);
    adj_predictor_free(p);
    return status;
}
