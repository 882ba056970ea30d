/* options.c - see train.h. */
#include <string.h>

#include "adjoint_data.h"
#include "adjoint_nn.h"
#include "cli/command.h"
#include "train.h"

static const train_opts unset = {.data = {.channels = UNSET, .limit = UNSET, .val_split = UNSET},
                                 .epochs = UNSET,
                                 .batch = UNSET,
                                 .shift = UNSET,
                                 .seed = UNSET,
                                 .threads = UNSET,
                                 .every = UNSET,
                                 .lr = UNSET};

static int check(const train_opts *o)
{
    if (o->resume && o->checkpoint == NULL)
        return complain("train", EXIT_USAGE, "--resume: --checkpoint FILE is missing");
    if (o->every != UNSET && o->checkpoint == NULL)
        return complain("train", EXIT_USAGE, "--checkpoint-every: --checkpoint FILE is missing");
    if (o->tune_file != NULL && !o->tune)
        return complain("train", EXIT_USAGE, "--tune-file: --tune is missing");
    if (o->weights != NULL && o->resume)
        return complain("train", EXIT_USAGE, "--weights: --resume goes on with the checkpoint's");
    if (o->weights == NULL && (o->map != NULL || o->head != NULL))
        return complain("train", EXIT_USAGE, "%s: --weights FILE is missing",
                        o->map != NULL ? "--map" : "--head");
    return CONTINUE;
}

int parse_train(train_opts *o, int argc, char **argv)
{
    *o = unset;
    const option options[] = {
        {"--model", "NAME", "one of adjoint models; default: lenet", .text = &o->model},
        {"--data", "PATH", DATA_HELP, .text = &o->data.path},
        {"--epochs", "N", "default: 10", .integer = &o->epochs, .range = {1, 100000}},
        {"--batch", "N", "images in a step; default: 64", .integer = &o->batch,
         .range = {1, 100000}},
        {"--lr", "X", "the first learning rate of the cosine schedule; default: the optimizer's",
         .real = &o->lr, .range = {1e-12, 1e6}},
        {"--optimizer", "NAME", "sgd, momentum (default), nesterov, adam or adamw",
         .text = &o->optimizer},
        {"--shift", "N", "training images are moved by up to N pixels; default: 1",
         .integer = &o->shift, .range = {0, ADJ_MAX_SHIFT}},
        {"--seed", "N", "of initial values and shuffling; default: 1", .integer = &o->seed,
         .range = {0, 9e15}},
        {"--backend", "NAME", "onednn (default) or naive", .text = &o->backend},
        {"--threads", "N", "default: OpenMP's", .integer = &o->threads, .range = {1, MAX_THREADS}},
        {"--tune", "", "times the candidates of each step first and takes the fastest",
         .flag = &o->tune},
        {"--tune-file", "FILE", "keeps what --tune finds; default: ADJOINT_TUNE's",
         .text = &o->tune_file},
        {"--precision", "P", "f32 (default), or bf16 or f16 between f32 parameters and losses",
         .text = &o->precision, .words = PRECISION_WORDS},
        {"--math", "MODE", "exact (default), or fast: algorithms with larger rounding errors",
         .text = &o->math, .words = MATH_WORDS},
        {"--recompute", "", "cheap activations are computed again, not kept: less memory",
         .flag = &o->recompute},
        {"--weights", "FILE", "to begin with: a safetensors file", .text = &o->weights},
        {"--map", "NAME", "whose names these weights have: pytorch, keras or a map file",
         .text = &o->map},
        {"--head", "H",
         "keep (default), or new: the last layer is not loaded, nor what does not fit",
         .text = &o->head, .words = "keep new"},
        {"--freeze", "PATTERN", "parameters that stay as they are: \"conv1/*,block?/*\"",
         .text = &o->freeze},
        {"--log", "FILE", "one JSON object a line", .text = &o->log},
        {"--out", "NAME",
         "NAME.safetensors: the weights; else a folder: weights, best weights, metrics, report; on "
         "Ctrl-C as well",
         .text = &o->out},
        {"--checkpoint", "FILE", "all that --resume needs, after each epoch and on Ctrl-C",
         .text = &o->checkpoint},
        {"--checkpoint-every", "N", "the same after every N steps", .integer = &o->every,
         .range = {1, 1e9}},
        {"--plain", "", "neither colours nor a drawn curve on a terminal", .flag = &o->plain},
        {"--resume", "", "go on from the checkpoint, with its settings; more --epochs prolong it",
         .flag = &o->resume},
        {0},
    };
    option more[DATA_OPTIONS];
    list_data_options(&o->data, more);
    const usage u = {.command = "train",
                     .summary = "Trains a model and tests it after each epoch.",
                     .options = options,
                     .more = more};
    int status = parse_options(&u, argc, argv);
    return status == CONTINUE ? check(o) : status;
}

int check_model(const char *command, const char *name)
{
    if (adj_model_find(name, NULL) != NULL)
        return CONTINUE;
    return complain(command, EXIT_USAGE,
                    "unknown model %.200s (did you mean %s?), adjoint models lists them", name,
                    adj_model_nearest(name)->name);
}

static void set_default(int64_t *option, int64_t value)
{
    if (*option == UNSET)
        *option = value;
}

static double default_rate(const char *optimizer)
{
    if (strncmp(optimizer, "adam", 4) == 0)
        return 0.001;
    return strcmp(optimizer, "sgd") == 0 ? 0.05 : 0.01;
}

void set_train_defaults(train_opts *o)
{
    o->model = o->model != NULL ? o->model : "lenet";
    o->optimizer = o->optimizer != NULL ? o->optimizer : "momentum";
    o->backend = o->backend != NULL ? o->backend : "onednn";
    o->precision = o->precision != NULL ? o->precision : "f32";
    o->math = o->math != NULL ? o->math : "exact";
    o->freeze = o->freeze != NULL ? o->freeze : "none";
    o->data.size = o->data.size != NULL ? o->data.size : data_defaults.size;
    o->data.resize = o->data.resize != NULL ? o->data.resize : data_defaults.resize;
    o->data.val_split = o->data.val_split >= 0 ? o->data.val_split : 0;
    set_default(&o->data.channels, 0);
    set_default(&o->data.limit, 0);
    set_default(&o->epochs, 10);
    set_default(&o->batch, 64);
    set_default(&o->shift, 1);
    set_default(&o->seed, 1);
    set_default(&o->threads, 0);
    set_default(&o->every, 0);
    if (o->lr < 0)
        o->lr = default_rate(o->optimizer);
}
