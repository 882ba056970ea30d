/* train.c - adjoint train: trains a model, tests it after each epoch, writes weights and a log. The
 * training itself is adjoint_fit.h's. Ctrl-C, SIGTERM and SIGHUP are noticed between two steps. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adjoint_fit.h"
#include "base/limits.h"
#include "cli/environment.h"
#include "cli/command.h"
#include "cli/model.h"
#include "cli/mpirun.h"
#include "cli/onnx_model.h"
#include "cli/standard.h"
#include "cli/terminal.h"
#include "data.h"
#include "events.h"
#include "files.h"
#include "io/data/origin.h"
#include "ops/nn/model_list.h"
#include "ops/nn/names.h"
#include "ops/nn/range_test.h"
#include "train.h"
#include "train/internal.h"
#include "weights.h"

enum { COMPARE_EVERY = 100 }; /* steps between comparisons of the ranks' parameters */

typedef struct {
    train_opts *o;
    checkpoint_metadata notes;
    data_opts data; /* data options, with the validation split in use */
    adj_dataset *train, *test;
    float *class_weights; /* class weights; NULL: all 1 */
    adj_model_opts input; /* model options for these images */
    onnx_source source;   /* file of an ONNX model */
    adj_recipe recipe;
    adj_loss_scale scale; /* loss scale of f16 */
    adj_schedule schedule;
    adj_range_test range; /* result of --lr auto */
    adj_trainer *trainer;
    events told;
    run_files files;
    char cache[CACHE_PATH];
    mpirun_group group;
    int agreed; /* 1: all ranks know how the run ends */
} training;

static int unknown_optimizer(const char *name)
{
    const char *names[16];
    int n = 0;
    while (n < 16 && (names[n] = adj_optimizer_name_at(n)) != NULL)
        n++;
    return complain(EXIT_USAGE, "--optimizer: unknown optimizer %s%s", name,
                    did_you_mean(name, names, n, sizeof names[0],
                                 "expected sgd, momentum, nesterov, rmsprop, adam or adamw")
                        .s);
}

/* True on rank 0, which writes files and prints. */
static int is_first(const training *t) { return ranks_rank(t->group.ranks) == 0; }

static int on_step(void *user, const adj_fit_progress *now)
{
    training *t = user;
    return (is_first(t) && tell_step(&t->told, now) != 0) || interrupt_signal();
}

static int on_epoch(void *user, const adj_fit_progress *now)
{
    training *t = user;
    const trainer_details details = adj_trainer_details(t->trainer);
    return (is_first(t) && tell_epoch(&t->told, now, &details) != 0) || interrupt_signal();
}

/* ---- before the first step ---- */

static int is_word_given(const char *given, const char *word)
{
    return given != NULL && strcmp(given, word) == 0;
}

static int net_of(training *t, adj_net *net)
{
    adj_error error = {0};
    if (net_named(t->o->model, t->input.size, &t->source, net, &error) != ADJ_OK)
        return complain(EXIT_FAILED, "%s", error.message);
    t->source.new_head = is_word_given(t->o->head, "new");
    t->source.freeze = is_word_given(t->o->freeze, "none") ? NULL : t->o->freeze;
    net->options.size = t->input.size;
    net->options.freeze = t->o->freeze;
    return CONTINUE;
}

static adj_exec_opts exec_options(training *t)
{
    const train_opts *o = t->o;
    const int is_full = is_word_given(o->tune, "full"); /* also with ADJOINT_TUNE=off */
    const int tunes = is_full || (!is_word_given(o->tune, "off") && !tuning_is_off());
    return (adj_exec_opts){.backend = o->backend,
                           .threads = (int)o->threads,
                           .math = (adj_math)word_index(MATH_WORDS, o->math),
                           .precision = (adj_precision)word_index(PRECISION_WORDS, o->precision),
                           .loss_scale = o->loss_scale,
                           .seed = (uint64_t)o->seed,
                           .tune = tunes && !o->resume,
                           .tune_file = tune_cache(t->cache),
                           .tune_seconds = is_full ? 0 : DEFAULT_TUNE_SECONDS,
                           .same_bits = (int)o->same_bits};
}

static adj_fit_opts fit_options(training *t)
{
    const train_opts *o = t->o;
    adj_optimizer_opts optimizer = t->recipe.optimizer;
    optimizer.lr = o->lr;
    return (adj_fit_opts){.epochs = o->epochs,
                          .batch = o->batch,
                          .accumulate = o->accumulate,
                          .optimizer = optimizer,
                          .schedule = &t->schedule,
                          .augment = {.flip = (int)o->flip,
                                      .shift = o->shift,
                                      .cutout = o->cutout,
                                      .jitter = o->jitter,
                                      .mixup = o->mixup},
                          .loss = {.smoothing = o->smoothing, .class_weights = t->class_weights},
                          .exec = exec_options(t),
                          .checkpoint = {.path = o->checkpoint,
                                         .every = o->every,
                                         .best = t->files.out.best,
                                         .patience = o->patience,
                                         .n_metadata = CHECKPOINT_DATA,
                                         .metadata = t->notes.entry},
                          .distributed = {.ranks = t->group.ranks,
                                          .parallel = {.shards = (int)o->shards,
                                                       .sync_batch_norm = (int)o->sync_batch_norm},
                                          .compare_every = COMPARE_EVERY},
                          .on = {.step = on_step, .epoch = on_epoch, .user = t}};
}

/* Sets the schedule; base 0: the rate of fit_options, which may change when a run is extended. A
 * resumed run keeps the schedule of its start, with the number of epochs it had then. */
static void set_schedule(training *t)
{
    const train_opts *o = t->o;
    const int64_t images = o->batch * o->accumulate;
    const int64_t steps = (t->train->n + images - 1) / images;
    t->schedule = adj_recipe_schedule(&t->recipe, o->epochs, steps);
    t->schedule.base = t->schedule.total = 0;
    if (o->begun_warmup != UNSET)
        t->schedule.warmup = o->begun_warmup;
    if (o->begun_period != UNSET)
        t->schedule.period = o->begun_period;
}

/* Copies the batch and accumulation that the trainer has limited to the training images, and prints
 * notes on them and on its plans. */
static void tell_cut(training *t)
{
    const trainer_details cut = adj_trainer_details(t->trainer);
    train_opts *o = t->o;
    const struct {
        const char *name;
        int64_t to, from;
    } cuts[] = {{"", cut.batch, o->batch}, {" accumulate", cut.accumulate, o->accumulate}};

    for (int i = 0; i < 2; i++)
        if (cuts[i].to < cuts[i].from)
            complain(EXIT_OK,
                     "note: --batch%s is reduced to %lld: the data have %lld training image%s (got "
                     "%lld)",
                     cuts[i].name, (long long)cuts[i].to, (long long)t->train->n,
                     t->train->n > 1 ? "s" : "", (long long)cuts[i].from);
    o->batch = t->recipe.batch = cut.batch;
    o->accumulate = cut.accumulate;
    if (cut.warning[0] != '\0')
        complain(EXIT_OK, "%s", cut.warning);
}

static int open_trainer(training *t)
{
    const train_opts *o = t->o;
    adj_net net;
    adj_error error = {0};

    if (net_of(t, &net) != CONTINUE || check_classes(o, &t->source, t->train) != CONTINUE)
        return EXIT_FAILED;
    t->recipe = recipe_of(o);
    t->scale.interval = o->scale_interval;
    t->recipe.optimizer.loss_scale = o->scale_interval > 0 ? &t->scale : NULL;
    set_schedule(t);
    if (o->lr_auto) {
        const adj_fit_opts tried = fit_options(t);
        int status = find_rate(&net, t->train, &tried, &t->range, &t->o->lr);
        if (status != CONTINUE)
            return status;
        t->recipe.lr = o->lr;
    }
    const adj_fit_opts options = fit_options(t);

    checkpoint_data(t->o, &t->notes);
    if (adj_trainer_new(&net, t->train, t->test, &options, &t->trainer, &error) != ADJ_OK)
        return complain(EXIT_FAILED, "%s", error.message);
    tell_cut(t);
    return load_start(o, &t->source, t->train, t->input.size.c, t->trainer);
}

static int open_splits(training *t)
{
    const char *model = t->o->model;
    t->data = t->o->data;
    adj_dataset_part held_out = part_to_judge(&t->data);
    t->told.held_out_name = part_name(held_out);
    adj_dataset_opts takes;
    adj_model_opts own;
    int status = images_for_model(&t->data, model, &takes, &own);
    if (status == CONTINUE)
        status = open_data(&t->data, &takes, ADJ_TRAIN, NULL, &t->train);
    if (status == CONTINUE)
        status = open_data(&t->data, &takes, held_out, t->train, &t->test);
    else if (origin_of(t->train)->n_broken > 0) /* list unreadable files of both splits */
        (void)open_data(&t->data, &takes, held_out, NULL, &t->test);
    if (status != CONTINUE)
        return status;
    const adj_dataset *const part[] = {t->train, t->test};
    t->input = model_for_images(&t->data, &own, t->train);
    say_prepared(2, part, t->input.size.c, t->data.channels == 0 && !is_onnx_file(model));
    return CONTINUE;
}

/* Refuses options that are not available with several ranks. */
static int check_ranks(const training *t)
{
    const train_opts *o = t->o;
    if (ranks_size(t->group.ranks) == 1)
        return CONTINUE;
    if (o->lr_auto)
        return complain(EXIT_USAGE, "--lr auto: not available with several ranks");
    if (is_stdout(o->weights) || is_stdout(o->map))
        return complain(EXIT_USAGE, "%s: cannot be standard input with several ranks",
                        is_stdout(o->weights) ? "--weights" : "--map");
    return CONTINUE;
}

static int start(training *t)
{
    const train_opts *o = t->o;

    int status = check_ranks(t);
    if (status != CONTINUE)
        return status;
    adj_optimizer_opts known;
    if (adj_optimizer_from_name(o->optimizer, &known) != ADJ_OK)
        return unknown_optimizer(o->optimizer);
    status = files_check(&t->files, o, is_first(t));
    if (status == CONTINUE)
        status = check_model(o->model);
    if (status == CONTINUE && is_first(t) && o->out == NULL && o->checkpoint == NULL) {
        say_wrapped("note: weights are not saved; --out DIR saves weights, metrics and report");
        fflush(stdout); /* the next steps may take long */
    }
    if (status == CONTINUE && is_first(t))
        checkpoint_say_replaced(o);
    if (status == CONTINUE)
        status = open_splits(t);
    if (status == CONTINUE)
        status = read_class_weights(o->class_weights, t->train, &t->class_weights);
    if (status == CONTINUE)
        status = open_trainer(t);
    return status == CONTINUE && is_first(t) ? files_open(&t->files, o) : status;
}

static int resume(const training *t)
{
    adj_error error = {0};
    if (adj_trainer_resume(t->trainer, t->o->checkpoint, &error) == ADJ_OK)
        return CONTINUE;
    const int is_missing =
        t->o->data.path == NULL && strstr(error.message, "trained on other data") != NULL;
    return complain(EXIT_FAILED, "--resume: %s%s", error.message,
                    is_missing ? " (--data is missing; its default is the embedded digits)" : "");
}

/* ---- after the last ---- */

/* Saves the weights, and the checkpoint again if it could not be written. why: the error that ended
 * the run. */
static int save(training *t, const adj_error *why)
{
    const int unsaved = adj_trainer_details(t->trainer).unsaved;
    int status = t->files.out.weights != NULL
                     ? save_weights(t->o, t->files.out.weights, t->files.out.is_folder, t->trainer,
                                    t->files.output)
                     : CONTINUE;
    adj_error error = {0};

    if (unsaved) {
        int late = adj_trainer_save(t->trainer, t->o->checkpoint, &error) == ADJ_OK;
        return complain(EXIT_FAILED, "--checkpoint: %s%s", why->message,
                        late ? " (written on the second attempt)" : "");
    }
    return why->status == ADJ_OK ? status : complain(EXIT_FAILED, "%s", why->message);
}

static int diverged(const adj_fit_progress *at, const adj_error *why)
{
    if (at->epoch == 1 && at->step == 0)
        return complain(EXIT_FAILED, "%s", why->message);
    return complain(EXIT_FAILED,
                    "the loss is not finite in step %lld of epoch %lld: try a smaller --lr (now "
                    "%g)",
                    (long long)at->step + 1, (long long)at->epoch, at->lr);
}

/* True if the training was stopped by a signal to this process or to another rank. */
static int is_stopped(const training *t, adj_status ended)
{
    const int is_cut_short = ended == ADJ_OK && !adj_trainer_is_done(t->trainer);
    return interrupt_signal() != 0 || (is_cut_short && !t->told.failed);
}

static int save_report(const training *t)
{
    adj_error error = {0};
    if (t->files.out.report == NULL)
        return CONTINUE;
    if (results_write(t->trainer, t->test, t->told.held_out_name, &t->files.out, &error) != ADJ_OK)
        return complain(EXIT_FAILED, "--out: %s", error.message);
    say_wrapped("report written to %s", t->files.out.report);
    return CONTINUE;
}

static int begin(training *t)
{
    const int failed = tell_start(&t->told, t->trainer, t->train, t->test, &t->recipe,
                                  t->o->lr_auto ? &t->range : NULL) != 0 ||
                       (t->o->resume && tell_resumption(&t->told, t->trainer) != 0);
    return failed ? files_failed(&t->files, t->o) : CONTINUE;
}

/* Reports and saves the results on the first rank, after the last step. */
static int finish(training *t, const adj_fit_progress *at, adj_status ended, const adj_error *why)
{
    tell_end(&t->told, t->trainer, is_stopped(t, ended));
    /* a resumed run writes the best weights when it finds better ones than the run before it */
    if (t->o->resume && t->files.out.best != NULL && at->best_epoch > 0 &&
        access(t->files.out.best, F_OK) != 0)
        say_wrapped("the best weights are still those saved before --resume, in epoch %lld",
                    (long long)at->best_epoch);
    int status = save(t, why);
    if (t->told.failed || log_end(&t->told, t->trainer, is_stopped(t, ended)) != 0)
        return files_failed(&t->files, t->o);
    if (ended != ADJ_OK || status != CONTINUE || save_report(t) != CONTINUE)
        return EXIT_FAILED;
    return EXIT_OK;
}

/* Runs the training. After a failed step of several ranks nothing is saved, since parameters may be
 * partly updated. */
static int run(training *t)
{
    const terminal none = {0}; /* mpirun gives each rank a hidden terminal */
    adj_error why = {0};
    int status = EXIT_OK;

    t->told.shown =
        progress_start(ranks_size(t->group.ranks) > 1 ? none : terminal_open(), t->o->batch);
    interrupt_catch(is_first(t));
    if (is_first(t) && begin(t) != CONTINUE)
        return EXIT_FAILED;
    adj_status ended = adj_trainer_run(t->trainer, &why);
    const adj_fit_progress at = adj_trainer_progress(t->trainer);
    progress_clear(&t->told.shown);
    t->agreed = ended == ADJ_OK;
    if (ended != ADJ_OK && !isfinite(at.step_loss))
        return diverged(&at, &why);
    if (ended != ADJ_OK && ranks_size(t->group.ranks) > 1)
        return complain(EXIT_FAILED, "%s%s",
                        adj_trainer_details(t->trainer).unsaved ? "--checkpoint: " : "",
                        why.message);
    if (is_first(t))
        status = finish(t, &at, ended, &why);
    const int number = interrupt_signal();
    return status == EXIT_OK && number != 0 ? EXIT_SIGNAL + number : status;
}

int command_train(int argc, char **argv)
{
    train_opts o;
    training t = {.o = &o, .told = {.o = &o, .files = &t.files}};
    adj_tensors *resumed = NULL;
    char model[MODEL_NAME];

    repeat_command(t.told.command, sizeof t.told.command, "train");
    for (int i = 1; i < argc; i++)
        repeat_word(t.told.command, sizeof t.told.command, argv[i]);
    int status = parse_train(&o, argc, argv);
    if (status == CONTINUE)
        status = mpirun_join(o.rank_timeout, &t.group);
    if (status == CONTINUE && o.resume)
        status = checkpoint_open(&o, &resumed);
    if (status == CONTINUE) {
        name_model(&o, model);
        set_train_defaults(&o);
        if (o.threads == 0) { /* a checkpoint has its own number of threads */
            const int n = mpirun_threads(adj_default_threads());
            o.threads = n < MAX_THREADS ? n : MAX_THREADS;
        }
        omp_set_num_threads((int)o.threads);
        status = start(&t);
    }
    if (status == CONTINUE && o.resume)
        status = resume(&t);
    if (status == CONTINUE)
        status = run(&t);
    files_close(&t.files, status != EXIT_OK);
    adj_trainer_free(t.trainer);
    free(t.class_weights);
    adj_dataset_free(t.test);
    adj_dataset_free(t.train);
    adj_tensors_free(resumed);
    return mpirun_leave(&t.group, status, t.agreed);
}
