/* options.c - the command line of adjoint train: see train.h. */
#include <string.h>

#include "adjoint_data.h"
#include "base/backend_option.h"
#include "cli/command.h"
#include "cli/onnx_model.h"
#include "cli/standard.h"
#include "train.h"

/* Range of adj_augment.mixup, besides 0. */
static const double MIN_MIXUP = 0.001;
enum { MAX_MIXUP = 1000 };

/* Reads --lr: a number, or auto. */
static int read_rate(train_opts *o)
{
    const option rate = {"--lr", "X", "", .real = &o->lr, .range = {1e-12, 1e6}};

    o->lr_auto = o->lr_text != NULL && strcmp(o->lr_text, "auto") == 0;
    if (o->lr_text == NULL || o->lr_auto)
        return CONTINUE;
    if (option_store(&rate, o->lr_text) == NO_FAULT)
        return CONTINUE;
    return complain(EXIT_USAGE, "--lr: got \"%s\", expected a rate of %g to %g, or auto",
                    o->lr_text, rate.range[0], rate.range[1]);
}

static int check(train_opts *o)
{
    adj_error error;
    if (check_backend_option(o->backend, adj_backends, "--backend: ", &error) != ADJ_OK)
        return complain(EXIT_USAGE, "%s", error.message);
    if (o->mixup > 0 && o->mixup < MIN_MIXUP)
        return complain(EXIT_USAGE,
                        "--augment mixup: out of range (got %g, expected 0, or %g to %d)", o->mixup,
                        MIN_MIXUP, MAX_MIXUP);
    if (o->resume && o->lr_auto)
        return complain(EXIT_USAGE, "--lr auto: the checkpoint has the learning rate (omit --lr)");
    const int is_onnx = is_onnx_file(o->model); /* an ONNX file has weights */
    if (o->freeze != NULL && o->weights == NULL && !o->resume && !is_onnx)
        complain(EXIT_OK, "note: --freeze without --weights keeps random initial values");
    if (refuse_standard("--checkpoint", o->checkpoint) != CONTINUE)
        return EXIT_USAGE;
    const int is_full = o->tune != NULL && strcmp(o->tune, "full") == 0;
    if (is_full && o->shards != UNSET)
        return complain(EXIT_USAGE, "--tune full cannot be combined with --parallel shards, which "
                                    "gives the same bits in every run");
    if (is_full && o->resume)
        return complain(
            EXIT_USAGE,
            "--tune full cannot be combined with --resume, which keeps the checkpoint's kernels");
    if (o->weights != NULL && o->resume)
        return complain(
            EXIT_USAGE,
            "--weights cannot be combined with --resume, which loads the checkpoint's weights");
    if (o->weights == NULL && o->head != NULL && !is_onnx)
        return complain(EXIT_USAGE, "--head requires --weights FILE");
    return CONTINUE;
}

static const remark statuses[] = {
    {"4", "under mpirun: a rank did not respond; all ranks ended"},
    {"129, 130, 143", "stopped after a step by SIGHUP, Ctrl-C or SIGTERM; --out and --checkpoint "
                      "are written unless a second signal arrives"},
    {NULL, NULL}};
static const remark examples[] = {
    {"adjoint train --out lenet.safetensors", "Trains LeNet on the built-in digits."},
    {"adjoint train --model resnet20 --data mnist --checkpoint run.ckpt",
     "Trains on the four IDX files in the folder mnist, with checkpoints."},
    {"adjoint train --model resnet20 --data mnist --checkpoint run.ckpt --resume",
     "Resumes after Ctrl-C or a crash."},
    {"adjoint train --data photos --augment flip --epochs 10,patience=5",
     "Trains on a folder of images, with augmentation and early stopping."},
    {"mpirun -n 2 adjoint train --model resnet20 --data cifar",
     "Trains with two processes, half of each batch each (build with ninja mpi first)."},
    {"adjoint train --log - | jq 'select(.event == \"epoch\").held_out_accuracy'",
     "Writes the log to standard output, messages to standard error."},
    {NULL, NULL}};

/* Destination of the values on the command line, which parse_train resets and copies. */
static train_opts given;

/* Items of the options whose values are lists. */
static const option
    epochs[] = {{"", "N", "", .integer = &given.epochs, .range = {1, 100000}},
                {"patience", "N", "", .integer = &given.patience, .range = {0, 100000}},
                {0}},
    batch[] = {{"", "N", "", .integer = &given.batch, .range = {1, 100000}},
               {"accumulate", "N", "", .integer = &given.accumulate, .range = {1, 10000}},
               {0}},
    optimizer[] = {{"", "NAME", "", .text = &given.optimizer},
                   {"weight-decay", "X", "", .real = &given.weight_decay, .range = {0, 1}},
                   {"clip", "X", "", .real = &given.clip, .range = {0, 1e6}},
                   {0}},
    schedule[] = {{"", "NAME", "", .text = &given.schedule, .words = SCHEDULE_WORDS},
                  {"warmup", "X", "", .real = &given.warmup, .range = {0, 100000}},
                  {0}},
    augment[] = {{"flip", "", "", .flag = &given.flip},
                 {"shift", "N", "", .integer = &given.shift, .range = {0, ADJ_MAX_SHIFT}},
                 {"cutout", "N", "", .integer = &given.cutout, .range = {0, ADJ_MAX_SIDE}},
                 {"jitter", "X", "", .real = &given.jitter, .range = {0, 100}},
                 {"mixup", "X", "", .real = &given.mixup, .range = {0, MAX_MIXUP}},
                 {0}},
    parallel[] = {{"shards", "N", "", .integer = &given.shards, .range = {1, ADJ_MAX_SHARDS}},
                  {"sync-batch-norm", "", "", .flag = &given.sync_batch_norm},
                  {"timeout", "S", "", .real = &given.rank_timeout, .range = {0.1, 1e6}},
                  {0}};

static const option options[] = {
    {"--model", "NAME",
     "model, see adjoint models, or an ONNX file; default: that of --weights, else lenet",
     .text = &given.model, .names = model_name_at},
    {"--data", "PATH", DATA_HELP, .text = &given.data.path},
    {"--epochs", "LIST",
     "number of epochs, default: 10; patience=N: stops after N epochs without better held-out "
     "accuracy, default: 0, off",
     .items = epochs},
    {"--seed", "N", "seed of initial values and shuffling; default: 1", .integer = &given.seed,
     .range = {0, 9e15}},
    {"--backend", "NAME", BACKEND_HELP, .text = &given.backend, .names = backend_name_at},
    {"--threads", "N", THREADS_HELP, .integer = &given.threads, .range = {1, MAX_THREADS}},
    {"--tune", "MODE",
     "benchmarks kernels before training: off; short, up to 2 s and 2 % of the run; full, up to 5 "
     "s per plan; without the option: short, without MODE: full",
     .text = &given.tune, .words = "off short full", .bare = "full"},
    {"--precision", "P", PRECISION_HELP, .text = &given.precision, .words = PRECISION_WORDS},
    {"--math", "MODE", MATH_HELP, .text = &given.math, .words = MATH_WORDS},
    /* files */
    {"--weights", "FILE", "initial weights file, safetensors or .npz; - is standard input",
     .text = &given.weights},
    {"--map", "NAME", MAP_HELP, .text = &given.map, .needs = "--weights"},
    {"--head", "H",
     "keep (default); new: initializes the last layer, and tensors that do not fit, anew",
     .text = &given.head, .words = "keep new"},
    {"--freeze", "PATTERN", "parameters not to train: \"conv1/*,block?/*\"", .text = &given.freeze},
    {"--log", "FILE", "log of JSON objects, one per line; - is standard output",
     .text = &given.log},
    {"--out", "NAME",
     "NAME.safetensors or -: writes the weights; other names: a folder with weights, best weights, "
     "metrics and report",
     .text = &given.out},
    {"--checkpoint", "FILE", "checkpoint for --resume, written after each epoch and on Ctrl-C",
     .text = &given.checkpoint},
    {"--checkpoint-every", "N", "also writes the checkpoint every N steps", .integer = &given.every,
     .range = {1, 1e9}, .needs = "--checkpoint"},
    {"--resume", "",
     "continues from the checkpoint with its settings; more --epochs extend the run",
     .flag = &given.resume, .needs = "--checkpoint"},
    /* learning */
    {"--batch", "LIST", "images per step *; accumulate=N: accumulates N batches before each update",
     .items = batch},
    {"--optimizer", "LIST",
     "sgd, momentum, nesterov, rmsprop, adam or adamw *; weight-decay=X *; clip=X: clips the "
     "global gradient norm, 0: off *",
     .names = optimizer_name_at, .items = optimizer},
    {"--lr", "X", "peak learning rate *; auto: learning-rate range test", .text = &given.lr_text},
    {"--schedule", "LIST",
     "learning-rate schedule: constant, step, exponential or cosine *; warmup=X: warm-up epochs *",
     .words = SCHEDULE_WORDS, .items = schedule},
    {"--smoothing", "X", "label smoothing, 0 to below 1 *", .real = &given.smoothing,
     .range = {0, 0.999}},
    {"--augment", "LIST",
     "data augmentation: flip, horizontal; shift=N, up to N pixels *; cutout=N, a square of N x N "
     "pixels; jitter=X, relative change of brightness, contrast and saturation; mixup=X, with "
     "weights from Beta(X, X)",
     .items = augment},
    {"--class-weights", "W",
     "weight of each class in the loss: none (default); balanced, by inverse frequency; or "
     "numbers, 1,2.5,1",
     .text = &given.class_weights},
    {"--parallel", "LIST",
     "data parallelism under mpirun: shards=N per batch, default: one per rank, the same bits for "
     "any number of threads and of ranks that divides N; sync-batch-norm: statistics over all "
     "shards; timeout=S: seconds until a silent rank counts as lost, default: 20",
     .items = parallel},
    {0},
};

int parse_train(train_opts *o, int argc, char **argv)
{
    option size[SIZE_ITEMS], more[DATA_OPTIONS];
    list_data_options(&given.data, size, more);
    const usage u = {.command = "train",
                     .summary = "Trains a model and evaluates it after each epoch. * marks options "
                                "whose default is the model's recipe (see adjoint models). LIST is "
                                "comma-separated: --optimizer adamw,clip=1.",
                     .options = options,
                     .more = more,
                     .statuses = statuses,
                     .variables = TUNED_VARIABLES,
                     .examples = examples};
    given = unset_train_opts();
    int status = parse_options(&u, argc, argv);
    *o = given;
    if (status == CONTINUE)
        status = read_rate(o);
    return status == CONTINUE ? check(o) : status;
}
