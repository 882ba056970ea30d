/* options.c - see train.h. */
#include <string.h>

#include "augment.h"
#include "cli/command.h"
#include "cli/output.h"
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
    if (refuse_standard("train", "--checkpoint", o->checkpoint) != CONTINUE)
        return EXIT_USAGE;
    if (o->resume && o->checkpoint == NULL)
        return complain("train", EXIT_USAGE, "--resume: --checkpoint FILE is missing");
    if (o->every != UNSET && o->checkpoint == NULL)
        return complain("train", EXIT_USAGE, "--checkpoint-every: --checkpoint FILE is missing");
    if (o->tune_file != NULL && !o->tune)
        return complain("train", EXIT_USAGE, "--tune-file: --tune is missing");
    return CONTINUE;
}

static const remark statuses[] = {
    {"129, 130, 143",
     "stopped after a step by SIGHUP, Ctrl-C or SIGTERM; --out and --checkpoint were written"},
    {NULL, NULL}};
static const remark examples[] = {
    {"adjoint train --out lenet.safetensors", "LeNet on digits that the program draws itself."},
    {"adjoint train --model resnet20 --data mnist --epochs 20 --checkpoint run.ckpt",
     "On the four files in the folder mnist, so that it can be resumed."},
    {"adjoint train --checkpoint run.ckpt --resume", "Goes on after Ctrl-C or a crash."},
    {"adjoint train --log - | jq .test_accuracy",
     "The log on standard output; what else is told goes to standard error."},
    {NULL, NULL}};

int parse_train(train_opts *o, int argc, char **argv)
{
    *o = unset;
    const option options[] = {
        {"--model", "NAME", "one of adjoint models; default: lenet", .text = &o->model,
         .names = model_name_at},
        {"--data", "PATH", DATA_HELP, .text = &o->data.path},
        {"--epochs", "N", "default: 10", .integer = &o->epochs, .range = {1, 100000}},
        {"--batch", "N", "images in a step; default: 64", .integer = &o->batch,
         .range = {1, 100000}},
        {"--lr", "X", "the first learning rate of the cosine schedule; default: the optimizer's",
         .real = &o->lr, .range = {1e-12, 1e6}},
        {"--optimizer", "NAME", "sgd, momentum (default), nesterov, adam or adamw",
         .text = &o->optimizer, .names = optimizer_name_at},
        {"--shift", "N", "training images are moved by up to N pixels; default: 1",
         .integer = &o->shift, .range = {0, MAX_SHIFT}},
        {"--seed", "N", "of initial values and shuffling; default: 1", .integer = &o->seed,
         .range = {0, 9e15}},
        {"--backend", "NAME", BACKEND_HELP, .text = &o->backend, .names = backend_name_at},
        {"--threads", "N", THREADS_HELP, .integer = &o->threads, .range = {1, MAX_THREADS}},
        {"--tune", "", "times the candidates of each step first and takes the fastest",
         .flag = &o->tune},
        {"--tune-file", "FILE", "keeps what --tune finds; default: ADJOINT_TUNE's",
         .text = &o->tune_file},
        {"--precision", "P", PRECISION_HELP, .text = &o->precision, .words = PRECISION_WORDS},
        {"--dtype", "", "",
         .instead = "parameters and losses stay f32 in training; --precision is of what "
                    "lies between"},
        {"--math", "MODE", MATH_HELP, .text = &o->math, .words = MATH_WORDS},
        {"--recompute", "", "cheap activations are computed again, not kept: less memory",
         .flag = &o->recompute},
        {"--log", "FILE", "one JSON object a line; - is standard output", .text = &o->log},
        {"--out", "FILE", "the weights, as safetensors, on Ctrl-C as well; - is standard output",
         .text = &o->out},
        {"--checkpoint", "FILE", "all that --resume needs, after each epoch and on Ctrl-C",
         .text = &o->checkpoint},
        {"--checkpoint-every", "N", "the same after every N steps", .integer = &o->every,
         .range = {1, 1e9}},
        {"--resume", "", "go on from the checkpoint, with its settings", .flag = &o->resume},
        {0},
    };
    option more[DATA_OPTIONS];
    list_data_options(&o->data, more);
    const usage u = {.command = "train",
                     .summary = "Trains a model and tests it after each epoch.",
                     .options = options,
                     .more = more,
                     .statuses = statuses,
                     .variables = PLAN_VARIABLES,
                     .examples = examples};
    int status = parse_options(&u, argc, argv);
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
