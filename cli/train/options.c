/* options.c - see train.h. */
#include <string.h>

#include "augment.h"
#include "cli/command.h"
#include "train.h"

static const train_opts unset = {.epochs = UNSET,
                                 .batch = UNSET,
                                 .shift = UNSET,
                                 .seed = UNSET,
                                 .threads = UNSET,
                                 .every = UNSET,
                                 .lr = UNSET};

static const struct {
    const char *word;
    adj_precision precision;
} precisions[] = {
    {"f32", ADJ_PRECISION_AS_BUILT}, {"bf16", ADJ_PRECISION_BF16}, {"f16", ADJ_PRECISION_F16}};
enum { PRECISIONS = sizeof precisions / sizeof precisions[0] };

int precision_from_word(const char *word, adj_precision *precision)
{
    for (int i = 0; i < PRECISIONS; i++)
        if (strcmp(word, precisions[i].word) == 0) {
            *precision = precisions[i].precision;
            return 1;
        }
    return 0;
}

int check_words(const train_opts *o)
{
    adj_precision any;
    if (o->precision != NULL && !precision_from_word(o->precision, &any))
        return complain("train", EXIT_USAGE, "--precision: got \"%s\", expected f32, bf16 or f16",
                        o->precision);
    if (o->math != NULL && strcmp(o->math, "exact") != 0 && strcmp(o->math, "fast") != 0)
        return complain("train", EXIT_USAGE, "--math: got \"%s\", expected exact or fast", o->math);
    return CONTINUE;
}

static int check(const train_opts *o)
{
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
        {"--model", "NAME", "one of adjoint models; default: lenet", OPTION_TEXT, &o->model, 0, 0},
        {"--data", "DIR", "MNIST's four files; default: the drawn digits", OPTION_TEXT, &o->data, 0,
         0},
        {"--epochs", "N", "default: 10", OPTION_INTEGER, &o->epochs, 1, 100000},
        {"--batch", "N", "images in a step; default: 64", OPTION_INTEGER, &o->batch, 1, 100000},
        {"--lr", "X", "the first learning rate of the cosine schedule; default: the optimizer's",
         OPTION_REAL, &o->lr, 1e-12, 1e6},
        {"--optimizer", "NAME", "sgd, momentum (default), nesterov, adam or adamw", OPTION_TEXT,
         &o->optimizer, 0, 0},
        {"--shift", "N", "training images are moved by up to N pixels; default: 1", OPTION_INTEGER,
         &o->shift, 0, MAX_SHIFT},
        {"--seed", "N", "of initial values and shuffling; default: 1", OPTION_INTEGER, &o->seed, 0,
         9e15},
        {"--backend", "NAME", "onednn (default) or naive", OPTION_TEXT, &o->backend, 0, 0},
        {"--threads", "N", "default: OpenMP's", OPTION_INTEGER, &o->threads, 1, MAX_THREADS},
        {"--tune", "", "times the candidates of each step first and takes the fastest", OPTION_FLAG,
         &o->tune, 0, 0},
        {"--tune-file", "FILE", "keeps what --tune finds; default: ADJOINT_TUNE's", OPTION_TEXT,
         &o->tune_file, 0, 0},
        {"--precision", "P", "f32 (default), or bf16 or f16 between f32 parameters and losses",
         OPTION_TEXT, &o->precision, 0, 0},
        {"--math", "MODE", "exact (default), or fast: algorithms with larger rounding errors",
         OPTION_TEXT, &o->math, 0, 0},
        {"--recompute", "", "cheap activations are computed again, not kept: less memory",
         OPTION_FLAG, &o->recompute, 0, 0},
        {"--log", "FILE", "one JSON object a line", OPTION_TEXT, &o->log, 0, 0},
        {"--out", "FILE", "the weights, as safetensors; on Ctrl-C as well", OPTION_TEXT, &o->out, 0,
         0},
        {"--checkpoint", "FILE", "all that --resume needs, after each epoch and on Ctrl-C",
         OPTION_TEXT, &o->checkpoint, 0, 0},
        {"--checkpoint-every", "N", "the same after every N steps", OPTION_INTEGER, &o->every, 1,
         1e9},
        {"--resume", "", "go on from the checkpoint, with its settings", OPTION_FLAG, &o->resume, 0,
         0},
    };
    const usage u = {"train", "Trains a model and tests it after each epoch.",
                     sizeof options / sizeof options[0], options};
    int status = parse_options(&u, argc, argv);
    if (status == CONTINUE)
        status = check_words(o);
    return status == CONTINUE ? check(o) : status;
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
    set_default(&o->epochs, 10);
    set_default(&o->batch, 64);
    set_default(&o->shift, 1);
    set_default(&o->seed, 1);
    set_default(&o->threads, 0);
    set_default(&o->every, 0);
    if (o->lr < 0)
        o->lr = default_rate(o->optimizer);
}
