/* options.c - see train.h. */
#include <string.h>

#include "adjoint_data.h"
#include "adjoint_nn.h"
#include "cli/command.h"
#include "cli/output.h"
#include "settings.h"

/* Range of adj_augment.mixup, besides 0. */
static const double MIN_MIXUP = 0.001, MAX_MIXUP = 1000;

/* Reads --lr: a number, or auto. */
static int read_rate(train_opts *o)
{
    const option rate = {"--lr", "X", "", .real = &o->lr, .range = {1e-12, 1e6}};

    o->lr_auto = o->lr_text != NULL && strcmp(o->lr_text, "auto") == 0;
    if (o->lr_text == NULL || o->lr_auto)
        return CONTINUE;
    if (option_store(&rate, o->lr_text) == NO_FAULT)
        return CONTINUE;
    return complain("train", EXIT_USAGE, "--lr: got \"%s\", expected a rate of %g to %g, or auto",
                    o->lr_text, rate.range[0], rate.range[1]);
}

static int check(train_opts *o)
{
    if (o->mixup > 0 && o->mixup < MIN_MIXUP)
        return complain("train", EXIT_USAGE,
                        "--augment mixup: out of range (got %g, expected 0, or %g to %g)", o->mixup,
                        MIN_MIXUP, MAX_MIXUP);
    if (o->resume && o->lr_auto)
        return complain("train", EXIT_USAGE,
                        "--lr auto: the checkpoint has the rate (leave it out)");
    if (o->freeze != NULL && o->weights == NULL && !o->resume)
        complain("train", EXIT_OK, "note: --freeze without --weights keeps random initial values");
    if (refuse_standard("train", "--checkpoint", o->checkpoint) != CONTINUE)
        return EXIT_USAGE;
    if (o->resume && o->checkpoint == NULL)
        return complain("train", EXIT_USAGE, "--resume: --checkpoint FILE is missing");
    if (o->every > 0 && o->checkpoint == NULL)
        return complain("train", EXIT_USAGE, "--checkpoint-every: --checkpoint FILE is missing");
    const int is_full = o->tune != NULL && strcmp(o->tune, "full") == 0;
    if (is_full && o->shards != UNSET)
        return complain("train", EXIT_USAGE,
                        "--tune full: not with --parallel shards, whose bits are to be the same in "
                        "every run");
    if (is_full && o->resume)
        return complain("train", EXIT_USAGE,
                        "--tune full: --resume goes on with the checkpoint's kernels");
    if (o->weights != NULL && o->resume)
        return complain("train", EXIT_USAGE, "--weights: --resume goes on with the checkpoint's");
    if (o->weights == NULL && (o->head != NULL || o->map != NULL))
        return complain("train", EXIT_USAGE, "%s: --weights FILE is missing",
                        o->head != NULL ? "--head" : "--map");
    return CONTINUE;
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
    {"adjoint train --data photos --augment flip --patience 5",
     "On a folder of images, changed at random; ends when it no longer gets better."},
    {"mpirun -n 2 adjoint train --model resnet20 --data cifar",
     "Two processes that each take half of every batch (ninja mpi comes first)."},
    {"adjoint train --log - | jq 'select(.event == \"epoch\").held_out_accuracy'",
     "The log on standard output; other messages on standard error."},
    {NULL, NULL}};

/* The items of options whose values are lists; each list ends without a name. */
typedef struct {
    option size[SIZE_ITEMS], batch[3], optimizer[4], schedule[3], augment[6], parallel[4];
} items;

static void list_items(train_opts *o, items *i)
{
    const items all = {
        .batch = {{"", "N", "", .integer = &o->batch, .range = {1, 100000}},
                  {"accumulate", "N", "", .integer = &o->accumulate, .range = {1, 10000}}},
        .optimizer = {{"", "NAME", "", .text = &o->optimizer, .room = o->kept[0]},
                      {"weight-decay", "X", "", .real = &o->weight_decay, .range = {0, 1}},
                      {"clip", "X", "", .real = &o->clip, .range = {0, 1e6}}},
        .schedule = {{"", "NAME", "", .text = &o->schedule, .room = o->kept[1],
                      .words = SCHEDULE_WORDS},
                     {"warmup", "X", "", .real = &o->warmup, .range = {0, 100000}}},
        .augment = {{"flip", "", "", .flag = &o->flip},
                    {"shift", "N", "", .integer = &o->shift, .range = {0, ADJ_MAX_SHIFT}},
                    {"cutout", "N", "", .integer = &o->cutout, .range = {0, ADJ_MAX_SIDE}},
                    {"jitter", "X", "", .real = &o->jitter, .range = {0, 100}},
                    {"mixup", "X", "", .real = &o->mixup, .range = {0, MAX_MIXUP}}},
        .parallel = {{"shards", "N", "", .integer = &o->shards, .range = {1, 10000}},
                     {"sync-batch-norm", "", "", .flag = &o->sync_batch_norm},
                     {"timeout", "S", "", .real = &o->rank_timeout, .range = {0.1, 1e6}}}};
    *i = all;
}

/* Number of options of optimization and augmentation; the list ends with the options of the data.
 */
enum { LEARNING_OPTIONS = 9 };
static void list_learning_options(train_opts *o, items *i,
                                  option list[LEARNING_OPTIONS + DATA_OPTIONS])
{
    const option all[LEARNING_OPTIONS] = {
        {"--batch", "LIST",
         "images in a step *, at most all training images; accumulate=N: a step takes the "
         "gradients of N such batches",
         .items = i->batch},
        {"--optimizer", "LIST",
         "sgd, momentum, nesterov, rmsprop, adam or adamw *; weight-decay=X, of all parameters *; "
         "clip=X: largest norm of all gradients, 0: any *",
         .names = optimizer_name_at, .items = i->optimizer},
        {"--lr", "X", "the highest learning rate *; auto: a range test finds one",
         .text = &o->lr_text},
        {"--schedule", "LIST",
         "of the rate: constant, step, exponential or cosine *; warmup=X: epochs in which it rises "
         "to --lr *",
         .words = SCHEDULE_WORDS, .items = i->schedule},
        {"--smoothing", "X", "the part of each label that is spread over the classes *",
         .real = &o->smoothing, .range = {0, 0.999}},
        {"--augment", "LIST",
         "random changes of training images: flip, left to right; shift=N, by up to N pixels *; "
         "cutout=N, a blank square of N x N pixels; jitter=X, brightness, contrast and saturation "
         "by up to this part; mixup=X, in pairs with shares from Beta(X, X)",
         .items = i->augment},
        {"--class-weights", "W",
         "none (default); balanced: few images of a class count more; or a number for each "
         "class, 1,2.5,1",
         .text = &o->class_weights},
        {"--patience", "N",
         "ends after N epochs without a better held-out accuracy; default: 0, never",
         .integer = &o->patience, .range = {0, 100000}},
        {"--parallel", "LIST",
         "under mpirun: shards=N parts of each batch, for the same bits with 1, 2, 4, ... N ranks "
         "and any number of threads, default: one for each rank; sync-batch-norm: statistics of "
         "all shards; timeout=S: a rank that is silent for so long is lost, default: 20",
         .items = i->parallel},
    };
    memcpy(list, all, sizeof all);
    list_data_options(&o->data, i->size, list + LEARNING_OPTIONS);
}

/* Number of options of files; the list ends with the options of optimization. */
enum { FILE_OPTIONS = 9 };
static void list_file_options(train_opts *o, items *i, option list[])
{
    const option all[FILE_OPTIONS] = {
        {"--weights", "FILE", "initial weights, safetensors or .npz; - is standard input",
         .text = &o->weights},
        {"--map", "NAME", "whose names the weights have: pytorch, keras or a map file",
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
        {"--resume", "", "go on from the checkpoint, with its settings; more --epochs prolong it",
         .flag = &o->resume},
    };
    memcpy(list, all, sizeof all);
    list_learning_options(o, i, list + FILE_OPTIONS);
}

int parse_train(train_opts *o, int argc, char **argv)
{
    *o = unset_train_opts();
    const option options[] = {
        {"--model", "NAME", "one of adjoint models; default: that of --weights, else lenet",
         .text = &o->model, .names = model_name_at},
        {"--data", "PATH", DATA_HELP, .text = &o->data.path},
        {"--epochs", "N", "default: 10", .integer = &o->epochs, .range = {1, 100000}},
        {"--seed", "N", "of initial values and shuffling; default: 1", .integer = &o->seed,
         .range = {0, 9e15}},
        {"--backend", "NAME", BACKEND_HELP, .text = &o->backend, .names = backend_name_at},
        {"--threads", "N", THREADS_HELP, .integer = &o->threads, .range = {1, MAX_THREADS}},
        {"--tune", "MODE",
         "off, short (default) or full: kernels are timed first for nothing, up to 2 s and 2 % of "
         "the run, or up to 5 s a plan",
         .text = &o->tune, .words = "off short full", .bare = "full"},
        {"--precision", "P", PRECISION_HELP, .text = &o->precision, .words = PRECISION_WORDS},
        {"--dtype", "", "",
         .instead = "parameters and losses stay f32 in training; --precision is of what "
                    "lies between"},
        {"--math", "MODE", MATH_HELP, .text = &o->math, .words = MATH_WORDS},
        {0},
    };
    items lists;
    option more[FILE_OPTIONS + LEARNING_OPTIONS + DATA_OPTIONS];
    list_items(o, &lists);
    list_file_options(o, &lists, more);
    const usage u = {.command = "train",
                     .summary =
                         "Trains a model and tests it after each epoch. * marks what is as "
                         "in the model's recipe unless it is given: see adjoint models. A LIST is "
                         "items between commas: --optimizer adamw,clip=1.",
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
