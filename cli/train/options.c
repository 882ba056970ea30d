/* options.c - see train.h. */
#include <string.h>

#include "adjoint_data.h"
#include "adjoint_nn.h"
#include "cli/command.h"
#include "cli/output.h"
#include "train.h"

/* What adj_augment.mixup may be, but 0. */
static const double MIN_MIXUP = 0.001, MAX_MIXUP = 1000;
static const double MAX_SCALE = 1e9; /* far more than f16's numbers allow */

static const train_opts unset = {.data = {.channels = UNSET, .limit = UNSET, .val_split = UNSET},
                                 .epochs = UNSET,
                                 .batch = UNSET,
                                 .patience = UNSET,
                                 .flip = UNSET,
                                 .shift = UNSET,
                                 .cutout = UNSET,
                                 .jitter = UNSET,
                                 .mixup = UNSET,
                                 .loss_scale = UNSET,
                                 .scale_interval = UNSET,
                                 .begun_warmup = UNSET,
                                 .begun_period = UNSET,
                                 .begun_epochs = UNSET,
                                 .accumulate = UNSET,
                                 .shards = UNSET,
                                 .same_bits = UNSET,
                                 .sync_batch_norm = UNSET,
                                 .compare_every = UNSET,
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

/* A resumed run has its precision from the checkpoint. */
static int check_scale(const train_opts *o)
{
    const int is_f16 = o->resume || (o->precision != NULL && strcmp(o->precision, "f16") == 0);
    const char *given = o->loss_scale != UNSET       ? "--loss-scale"
                        : o->scale_interval != UNSET ? "--loss-scale-interval"
                                                     : NULL;
    if (given != NULL && !is_f16)
        return complain("train", EXIT_USAGE, "%s: --precision f16 is missing", given);
    if (o->loss_scale > 0 && o->scale_interval != UNSET)
        return complain("train", EXIT_USAGE,
                        "--loss-scale-interval: a fixed --loss-scale never grows (leave one out)");
    return CONTINUE;
}

static int check(train_opts *o)
{
    if (o->mixup > 0 && o->mixup < MIN_MIXUP)
        return complain("train", EXIT_USAGE,
                        "--mixup: out of range (got %g, expected 0, or %g to %g)", o->mixup,
                        MIN_MIXUP, MAX_MIXUP);
    if (o->resume && o->lr_auto)
        return complain("train", EXIT_USAGE,
                        "--lr auto: the checkpoint has the rate (leave it out)");
    if (refuse_standard("train", "--checkpoint", o->checkpoint) != CONTINUE)
        return EXIT_USAGE;
    if (o->resume && o->checkpoint == NULL)
        return complain("train", EXIT_USAGE, "--resume: --checkpoint FILE is missing");
    if (o->every != UNSET && o->checkpoint == NULL)
        return complain("train", EXIT_USAGE, "--checkpoint-every: --checkpoint FILE is missing");
    if (o->no_tune && (o->tune || o->tune_file != NULL))
        return complain("train", EXIT_USAGE, "--no-tune: not with %s",
                        o->tune ? "--tune" : "--tune-file");
    if (o->tune && o->shards != UNSET)
        return complain("train", EXIT_USAGE,
                        "--tune: not with --shards, whose bits are to be the same in every run");
    if (o->tune && o->resume)
        return complain("train", EXIT_USAGE,
                        "--tune: --resume goes on with the checkpoint's kernels");
    if (o->weights != NULL && o->resume)
        return complain("train", EXIT_USAGE, "--weights: --resume goes on with the checkpoint's");
    if (o->weights == NULL && (o->map != NULL || o->head != NULL))
        return complain("train", EXIT_USAGE, "%s: --weights FILE is missing",
                        o->map != NULL ? "--map" : "--head");
    return check_scale(o);
}

static const remark statuses[] = {
    {"4", "under mpirun: another rank did not answer; all have ended"},
    {"129, 130, 143",
     "stopped after a step by SIGHUP, Ctrl-C or SIGTERM; --out and --checkpoint were written, "
     "but not after a second signal"},
    {NULL, NULL}};
static const remark examples[] = {
    {"adjoint train --out lenet.safetensors", "LeNet on digits that the program draws itself."},
    {"adjoint train --model resnet20 --data mnist --checkpoint run.ckpt",
     "On the four files in the folder mnist, so that it can be resumed."},
    {"adjoint train --model resnet20 --data mnist --checkpoint run.ckpt --resume",
     "Goes on after Ctrl-C or a crash."},
    {"adjoint train --data photos --flip --class-weights balanced --patience 5",
     "On a folder of images, changed at random; ends when it no longer gets better."},
    {"mpirun -n 2 adjoint train --model resnet20 --data cifar",
     "Two processes that each take half of every batch."},
    {"adjoint train --log - | jq 'select(.event == \"epoch\").held_out_accuracy'",
     "The log on standard output; other messages on standard error."},
    {NULL, NULL}};

/* How it learns, and from which changes of the images; the list ends with the data's options. */
enum { LEARNING_OPTIONS = 15 };
static void list_learning_options(train_opts *o, option list[LEARNING_OPTIONS + DATA_OPTIONS])
{
    const option all[LEARNING_OPTIONS] = {
        {"--batch", "N", "images in a step, at most all training images *", .integer = &o->batch,
         .range = {1, 100000}},
        {"--optimizer", "NAME", "sgd, momentum, nesterov, adam or adamw *", .text = &o->optimizer,
         .names = optimizer_name_at},
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
         .range = {0, ADJ_MAX_SHIFT}},
        {"--flip", "", "half of the training images are mirrored, left to right", .flag = &o->flip},
        {"--cutout", "N", "a square of N x N pixels of training images is blanked; default: 0",
         .integer = &o->cutout, .range = {0, ADJ_MAX_SIDE}},
        {"--jitter", "X",
         "brightness, contrast and saturation of training images change by up to this part; "
         "default: 0",
         .real = &o->jitter, .range = {0, 100}},
        {"--mixup", "X",
         "training images are mixed in pairs, the shares drawn from Beta(X, X); default: 0, not",
         .real = &o->mixup, .range = {0, MAX_MIXUP}},
        {"--class-weights", "W",
         "none (default); balanced: few images of a class count more; or a number for each "
         "class, 1,2.5,1",
         .text = &o->class_weights},
        {"--patience", "N",
         "ends after N epochs without a better held-out accuracy; default: 0, never",
         .integer = &o->patience, .range = {0, 100000}},
    };
    memcpy(list, all, sizeof all);
    list_data_options(&o->data, list + LEARNING_OPTIONS);
}

/* Of processes that train together; the list ends with how it learns. */
enum { RANK_OPTIONS = 6 };
static void list_rank_options(train_opts *o, option list[])
{
    const option all[RANK_OPTIONS] = {
        {"--ranks", "N", "under mpirun: refuses another number of processes", .integer = &o->ranks,
         .range = {1, 1e6}},
        {"--shards", "N",
         "parts of each batch, which the ranks share out: the same bits for 1, 2, 4, ... N ranks "
         "and any number of threads; default: one for each rank",
         .integer = &o->shards, .range = {1, 10000}},
        {"--sync-batch-norm", "",
         "batch norms take the statistics of all shards: as if the batch were one",
         .flag = &o->sync_batch_norm},
        {"--accumulate", "N", "a step takes the gradients of N batches; default: 1",
         .integer = &o->accumulate, .range = {1, 10000}},
        {"--compare-every", "N",
         "ranks compare their parameters after N steps, and after epochs; default: 100",
         .integer = &o->compare_every, .range = {1, 1e9}},
        {"--rank-timeout", "S", "a rank that is silent for so long is lost; default: 20",
         .real = &o->rank_timeout, .range = {0.1, 1e6}},
    };
    memcpy(list, all, sizeof all);
    list_learning_options(o, list + RANK_OPTIONS);
}

/* The files that it reads and writes; the list ends with the options of ranks. */
enum { FILE_OPTIONS = 10 };
static void list_file_options(train_opts *o, option list[])
{
    const option all[FILE_OPTIONS] = {
        {"--weights", "FILE", "initial weights, safetensors or .npz; - is standard input",
         .text = &o->weights},
        {"--map", "NAME", "whose names these weights have: pytorch, keras or a map file",
         .text = &o->map},
        {"--head", "H",
         "keep (default), or new: the last layer is not loaded, nor what does not fit",
         .text = &o->head, .words = "keep new"},
        {"--freeze", "PATTERN", "parameters that stay as they are: \"conv1/*,block?/*\"",
         .text = &o->freeze},
        {"--log", "FILE", "one JSON object a line; - is standard output", .text = &o->log},
        {"--out", "NAME",
         "NAME.safetensors: the weights, - on standard output; else a folder: weights, best "
         "weights, metrics, report; on Ctrl-C as well",
         .text = &o->out},
        {"--checkpoint", "FILE", "all that --resume needs, after each epoch and on Ctrl-C",
         .text = &o->checkpoint},
        {"--checkpoint-every", "N", "the same after every N steps", .integer = &o->every,
         .range = {1, 1e9}},
        {"--plain", "", "neither colours nor a drawn curve on a terminal", .flag = &o->plain},
        {"--resume", "", "go on from the checkpoint, with its settings; more --epochs prolong it",
         .flag = &o->resume},
    };
    memcpy(list, all, sizeof all);
    list_rank_options(o, list + FILE_OPTIONS);
}

int parse_train(train_opts *o, int argc, char **argv)
{
    *o = unset;
    const option options[] = {
        {"--model", "NAME", "one of adjoint models; default: that of --weights, else lenet",
         .text = &o->model, .names = model_name_at},
        {"--data", "PATH", DATA_HELP, .text = &o->data.path},
        {"--epochs", "N", "default: 10", .integer = &o->epochs, .range = {1, 100000}},
        {"--seed", "N", "of initial values and shuffling; default: 1", .integer = &o->seed,
         .range = {0, 9e15}},
        {"--backend", "NAME", BACKEND_HELP, .text = &o->backend, .names = backend_name_at},
        {"--threads", "N", THREADS_HELP, .integer = &o->threads, .range = {1, MAX_THREADS}},
        {"--yield", "MODE", YIELD_HELP, .text = &o->yield, .words = YIELD_WORDS},
        {"--tune", "", "times all kernels that there are first, for up to 5 s a plan",
         .flag = &o->tune},
        {"--no-tune", "",
         "times none; default: up to 2 s, and no more than 2 % of the run, look for the fastest",
         .flag = &o->no_tune},
        {"--tune-file", "FILE",
         "keeps what is found; default: ADJOINT_TUNE's, or one in ~/.cache/adjoint",
         .text = &o->tune_file},
        {"--precision", "P", PRECISION_HELP, .text = &o->precision, .words = PRECISION_WORDS},
        {"--loss-scale", "X",
         "f16: gradients are stored X times as large; default: 0, a scale that follows them",
         .real = &o->loss_scale, .range = {0, MAX_SCALE}},
        {"--loss-scale-interval", "N",
         "after N steps that did not overflow that scale doubles; default: 2000",
         .integer = &o->scale_interval, .range = {1, 1e6}},
        {"--dtype", "", "",
         .instead = "parameters and losses stay f32 in training; --precision is of what "
                    "lies between"},
        {"--math", "MODE", MATH_HELP, .text = &o->math, .words = MATH_WORDS},
        {"--recompute", "",
         "cheap activations are computed again, not kept, wherever they can be: less memory; "
         "without it where that saves time",
         .flag = &o->recompute},
        {0},
    };
    option more[FILE_OPTIONS + RANK_OPTIONS + LEARNING_OPTIONS + DATA_OPTIONS];
    list_file_options(o, more);
    const usage u = {.command = "train",
                     .summary = "Trains a model and tests it after each epoch. * marks what is as "
                                "in the model's recipe unless it is given: see adjoint models.",
                     .options = options,
                     .more = more,
                     .statuses = statuses,
                     .variables = TUNED_VARIABLES,
                     .examples = examples};
    int status = parse_options(&u, argc, argv);
    if (status == CONTINUE)
        status = read_rate(o);
    return status == CONTINUE ? check(o) : status;
}
