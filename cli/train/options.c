/* options.c - see train.h. */
#include <string.h>

#include "augment.h"
#include "cli/command.h"
#include "train.h"

static const train_opts unset = {.data = {.channels = UNSET, .limit = UNSET, .val_split = UNSET},
                                 .epochs = UNSET,
                                 .batch = UNSET,
                                 .shift = UNSET,
                                 .seed = UNSET,
                                 .threads = UNSET,
                                 .every = UNSET,
                                 .lr = UNSET,
                                 .warmup = UNSET,
                                 .weight_decay = UNSET,
                                 .clip = UNSET,
                                 .smoothing = UNSET};

/* A number, or auto. */
static int read_rate(train_opts *o)
{
    const option rate = {"--lr", "X", "", .real = &o->lr, .range = {1e-12, 1e6}};

    o->lr_auto = o->lr_text != NULL && strcmp(o->lr_text, "auto") == 0;
    if (o->lr_text == NULL || o->lr_auto)
        return CONTINUE;
    return option_read("train", &rate, o->lr_text);
}

static int check(train_opts *o)
{
    if (o->resume && o->lr_auto)
        return complain("train", EXIT_USAGE,
                        "--lr auto: the checkpoint has the rate (leave it out)");
    if (o->resume && o->checkpoint == NULL)
        return complain("train", EXIT_USAGE, "--resume: --checkpoint FILE is missing");
    if (o->every != UNSET && o->checkpoint == NULL)
        return complain("train", EXIT_USAGE, "--checkpoint-every: --checkpoint FILE is missing");
    if (o->tune_file != NULL && !o->tune)
        return complain("train", EXIT_USAGE, "--tune-file: --tune is missing");
    return CONTINUE;
}

int parse_train(train_opts *o, int argc, char **argv)
{
    *o = unset;
    const option options[] = {
        {"--model", "NAME", "one of adjoint models; default: lenet", .text = &o->model},
        {"--data", "PATH", DATA_HELP, .text = &o->data.path},
        {"--epochs", "N", "default: 10", .integer = &o->epochs, .range = {1, 100000}},
        {"--batch", "N", "images in a step *", .integer = &o->batch, .range = {1, 100000}},
        {"--optimizer", "NAME", "sgd, momentum, nesterov, adam or adamw *", .text = &o->optimizer},
        {"--lr", "X", "the highest learning rate *; auto: a range test finds one",
         .text = &o->lr_text},
        {"--schedule", "NAME", "of the rate: constant, step, exponential or cosine *",
         .text = &o->schedule, .words = SCHEDULE_WORDS},
        {"--warmup", "X", "epochs in which the rate rises to --lr *", .real = &o->warmup,
         .range = {0, 100000}},
        {"--weight-decay", "X", "of all parameters *", .real = &o->weight_decay, .range = {0, 1}},
        {"--clip", "X", "gradients are scaled to this norm at most, 0: not *", .real = &o->clip,
         .range = {0, 1e6}},
        {"--smoothing", "X", "the part of each label that is spread over the classes *",
         .real = &o->smoothing, .range = {0, 0.999}},
        {"--shift", "N", "training images are moved by up to N pixels *", .integer = &o->shift,
         .range = {0, MAX_SHIFT}},
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
        {"--log", "FILE", "one JSON object a line", .text = &o->log},
        {"--out", "FILE", "the weights, as safetensors; on Ctrl-C as well", .text = &o->out},
        {"--checkpoint", "FILE", "all that --resume needs, after each epoch and on Ctrl-C",
         .text = &o->checkpoint},
        {"--checkpoint-every", "N", "the same after every N steps", .integer = &o->every,
         .range = {1, 1e9}},
        {"--resume", "", "go on from the checkpoint, with its settings", .flag = &o->resume},
        {0},
    };
    option more[DATA_OPTIONS];
    list_data_options(&o->data, more);
    const usage u = {"train",
                     "Trains a model and tests it after each epoch.\n"
                     "*: default: as in the model's recipe, see adjoint models",
                     options, more};
    int status = parse_options(&u, argc, argv);
    if (status == CONTINUE)
        status = read_rate(o);
    return status == CONTINUE ? check(o) : status;
}
