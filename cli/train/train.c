/* train.c - adjoint train: trains a model, tests it after each epoch, writes weights and a log. The
 * training itself is adjoint_fit.h's. Ctrl-C, SIGTERM and SIGHUP are noticed between two steps. */
#include <errno.h>
#include <math.h>
#include <omp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_fit.h"
#include "checkpoint.h"
#include "cli/command.h"
#include "cli/json.h"
#include "cli/output.h"
#include "cli/recipe.h"
#include "cli/standard.h"
#include "data.h"
#include "progress.h"
#include "range.h"
#include "settings.h"
#include "cli/model.h"
#include "train.h"
#include "weights.h"

typedef struct {
    train_opts *o;
    checkpoint_metadata notes;
    data_opts data; /* with the validation split that is taken */
    adj_dataset *train, *test;
    adj_model_opts size; /* of the model, for these images */
    adj_recipe recipe;
    adj_schedule schedule;
    adj_range_test range; /* of --lr auto */
    adj_trainer *trainer;
    progress shown;
    FILE *log, *output; /* output: standard output, where --log or --out is - */
    int log_failed;     /* which ends the run: the weights are right */
} training;

/* Only the signal handler writes it. */
static volatile sig_atomic_t interrupted;

static void on_signal(int number) { interrupted = number; }

/* The first one stops after the step, the second at once. Under nohup SIGHUP stays ignored. */
static void catch_interrupts(void)
{
    struct sigaction a = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
    struct sigaction before;
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &a, NULL);
    signal(SIGXFSZ, SIG_IGN); /* writing beyond a limit fails, as on a full disk */
}

static int unknown_optimizer(const char *name)
{
    const char *names[16];
    int n = 0;
    while (n < 16 && (names[n] = adj_optimiser_name_at(n)) != NULL)
        n++;
    return complain("train", EXIT_USAGE, "unknown optimizer %s%s", name,
                    did_you_mean(name, names, n, sizeof names[0],
                                 "expected sgd, momentum, nesterov, adam or adamw")
                        .s);
}

/* A long run should not fail at its end for a wrong name. */
static int check_files(const train_opts *o)
{
    const output_file files[] = {{"--out", o->out, OUTPUT_REPLACED_OR_STDOUT},
                                 {"--checkpoint", o->checkpoint, OUTPUT_REPLACED},
                                 {"--tune-file", o->tune_file, OUTPUT_REPLACED},
                                 {"--log", o->log, OUTPUT_OR_STDOUT}};
    return check_outputs("train", sizeof files / sizeof files[0], files);
}

static int on_step(void *user, const adj_fit_progress *now)
{
    training *t = user;
    progress_step(&t->shown, now);
    return interrupted != 0;
}

/* Prints and logs the epoch. */
static int on_epoch(void *user, const adj_fit_progress *f)
{
    training *t = user;

    progress_clear(&t->shown);
    printf("epoch %2lld/%lld  loss %.4f  accuracy %.2f %%  test loss %.4f  test accuracy %.2f %%  "
           "%.0f images/s\n",
           (long long)f->epoch, (long long)f->epochs, f->loss, 100 * f->accuracy, f->held_out.loss,
           100 * f->held_out.accuracy, f->images_per_second);
    fflush(stdout);
    t->log_failed =
        log_line(t->log,
                 json_pack("{s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "event", "epoch",
                           "epoch", (json_int_t)f->epoch, "loss", f->loss, "accuracy",
                           100 * f->accuracy, "test_loss", f->held_out.loss, "test_accuracy",
                           100 * f->held_out.accuracy, "lr", f->lr, "images_per_second",
                           f->images_per_second, "seconds", f->seconds)) != 0;
    return t->log_failed || interrupted;
}

/* ---- before the first step ---- */

static adj_net net_of(const training *t)
{
    return (adj_net){
        .name = t->o->model, .h = t->size.height, .w = t->size.width, .c = t->size.channels};
}

static adj_fit_opts fit_options(training *t)
{
    const train_opts *o = t->o;
    return (adj_fit_opts){.epochs = o->epochs,
                          .batch = o->batch,
                          .seed = o->seed,
                          .optimiser = &t->recipe.optimiser,
                          .lr = o->lr,
                          .schedule = &t->schedule,
                          .smoothing = o->smoothing,
                          .augment = {.shift = o->shift},
                          .freeze = o->freeze,
                          .backend = o->backend,
                          .threads = (int)o->threads,
                          .precision = (adj_precision)word_index(PRECISION_WORDS, o->precision),
                          .math = (adj_math)word_index(MATH_WORDS, o->math),
                          .tune = (int)o->tune,
                          .tune_file = o->tune_file,
                          .recompute = (int)o->recompute,
                          .checkpoint = o->checkpoint,
                          .checkpoint_every = o->every,
                          .n_metadata = CHECKPOINT_DATA,
                          .metadata = t->notes.entry,
                          .on_step = on_step,
                          .on_epoch = on_epoch,
                          .user = t};
}

/* A recipe's rates; base 0: adj_fit_opts.lr, which is another when a run is prolonged. */
static void set_schedule(training *t)
{
    const int64_t steps = (t->train->n + t->o->batch - 1) / t->o->batch;
    t->schedule = adj_recipe_schedule(&t->recipe, t->o->epochs, steps);
    t->schedule.base = t->schedule.total = 0;
}

static int open_trainer(training *t)
{
    const train_opts *o = t->o;
    const adj_net net = net_of(t);
    adj_error error = {0};

    t->recipe = recipe_of(o);
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
        return complain("train", EXIT_FAILED, "%s", error.message);
    const char *warning = adj_trainer_warning(t->trainer);
    if (warning[0] != '\0')
        complain("train", EXIT_OK, "%s", warning);
    return o->weights != NULL ? load_start(o, t->trainer) : CONTINUE;
}

static int open_parts(training *t)
{
    const char *model = t->o->model;
    t->data = t->o->data;
    adj_dataset_part judge = part_to_judge(&t->data);
    int status = open_data("train", &t->data, model, ADJ_TRAIN, NULL, &t->train);
    if (status == CONTINUE)
        status = open_data("train", &t->data, model, judge, t->train, &t->test);
    return status == CONTINUE ? fit_model("train", &t->data, model, t->train, &t->size) : status;
}

static int start(training *t)
{
    const train_opts *o = t->o;

    adj_optimiser_opts known;
    if (adj_optimiser_from_name(o->optimizer, &known) != ADJ_OK)
        return unknown_optimizer(o->optimizer);
    int status = check_files(o);
    if (status == CONTINUE && (is_stdout(o->log) || is_stdout(o->out)) &&
        (t->output = take_stdout()) == NULL)
        status = complain("train", EXIT_FAILED, "standard output: %s", strerror(errno));
    if (status == CONTINUE)
        status = check_model("train", o->model);
    if (status == CONTINUE)
        status = open_parts(t);
    if (status == CONTINUE)
        status = open_trainer(t);
    if (status != CONTINUE)
        return status;
    if (is_stdout(o->log))
        t->log = t->output;
    else if (o->log != NULL && (t->log = log_open(o->log, o->resume != 0)) == NULL)
        return complain("train", EXIT_FAILED, "--log: %s: %s", o->log, strerror(errno));
    return CONTINUE;
}

static int resume(const training *t)
{
    adj_error error = {0};
    if (adj_trainer_resume(t->trainer, t->o->checkpoint, &error) == ADJ_OK)
        return CONTINUE;
    return complain("train", EXIT_FAILED, "--resume: %s", error.message);
}

static int log_failed(const training *t)
{
    return complain("train", EXIT_FAILED, "--log: %s: cannot be written", t->o->log);
}

static int log_start(const training *t)
{
    const train_opts *o = t->o;
    const int64_t parameters = adj_trainable_elems(adj_trainer_loss(t->trainer));
    const int frozen = adj_trainer_frozen(t->trainer);
    char text[RECIPE_TEXT];

    say("%s, %lld parameters, on %s: %lld images to train on, %lld to test", o->model,
        (long long)parameters, data_name(o->data.path), (long long)t->train->n,
        (long long)t->test->n);
    say("%s", recipe_text(&t->recipe, text));
    if (o->lr_auto)
        say_range(&t->range, o->lr);
    if (frozen > 0)
        say("%d parameter tensors are frozen by %s", frozen, o->freeze);
    fflush(stdout);
    json_t *start = json_pack(
        "{s:s, s:s, s:I, s:o, s:I, s:I, s:I, s:I, s:s}", "event", "start", "model", o->model,
        "parameters", (json_int_t)parameters, "data", json_text(data_name(o->data.path)),
        "train_images", (json_int_t)t->train->n, "test_images", (json_int_t)t->test->n, "epochs",
        (json_int_t)o->epochs, "seed", (json_int_t)o->seed, "backend", o->backend);
    json_object_update_new(start, recipe_json(&t->recipe));
    if (log_line(t->log, start) != 0)
        return -1;
    return o->lr_auto ? log_line(t->log, json_range(&t->range, o->lr)) : 0;
}

static int log_resumption(const training *t)
{
    const adj_fit_progress at = adj_trainer_progress(t->trainer);
    printf("resumed after epoch %lld, step %lld\n", (long long)at.epoch - 1, (long long)at.step);
    fflush(stdout);
    return log_line(t->log, json_pack("{s:s, s:I, s:I}", "event", "resume", "epoch",
                                      (json_int_t)at.epoch - 1, "step", (json_int_t)at.step));
}

/* ---- after the last ---- */

/* The weights, and the checkpoint once more if it could not be written. why: of the run's end. */
static int save(training *t, const adj_error *why)
{
    const int unsaved = adj_trainer_progress(t->trainer).unsaved;
    int status = t->o->out != NULL ? save_weights(t->o, t->trainer, t->output) : CONTINUE;
    adj_error error = {0};

    if (unsaved) {
        int late = adj_trainer_save(t->trainer, t->o->checkpoint, &error) == ADJ_OK;
        return complain("train", EXIT_FAILED, "--checkpoint: %s%s", why->message,
                        late ? " (it was written at the second try)" : "");
    }
    return why->status == ADJ_OK ? status : complain("train", EXIT_FAILED, "%s", why->message);
}

static int diverged(const adj_fit_progress *at)
{
    return complain("train", EXIT_FAILED,
                    "the loss is not finite in step %lld of epoch %lld: try a smaller --lr (now "
                    "%g)",
                    (long long)at->step + 1, (long long)at->epoch, at->lr);
}

static void print_end(const training *t, const adj_fit_progress *at)
{
    if (at->best_epoch > 0)
        printf("best: %.2f %% in epoch %lld\n", 100 * at->best_accuracy, (long long)at->best_epoch);
    if (interrupted)
        printf(t->o->checkpoint != NULL && !at->unsaved
                   ? "stopped after the step, which --resume goes on from\n"
                   : "stopped after the step\n");
}

static int run(training *t)
{
    adj_error why = {0};

    if (log_start(t) != 0 || (t->o->resume && log_resumption(t) != 0))
        return log_failed(t);
    catch_interrupts();
    t->shown = progress_start(t->o->batch);
    adj_status ended = adj_trainer_run(t->trainer, &why);
    const adj_fit_progress at = adj_trainer_progress(t->trainer);
    progress_clear(&t->shown);
    if (ended != ADJ_OK && !isfinite(at.step_loss))
        return diverged(&at);
    print_end(t, &at);
    int status = save(t, &why);
    const int log_lost =
        t->log_failed ||
        log_line(t->log, json_pack("{s:s, s:I, s:f, s:b, s:f}", "event", "end", "best_epoch",
                                   (json_int_t)at.best_epoch, "best_accuracy",
                                   100 * at.best_accuracy, "interrupted", interrupted != 0,
                                   "seconds", seconds_now() - t->shown.started)) != 0;
    if (log_lost)
        return log_failed(t);
    if (ended != ADJ_OK || status != CONTINUE)
        return EXIT_FAILED;
    return interrupted ? EXIT_SIGNAL + interrupted : EXIT_OK;
}

/* No more than a checkpoint may say. */
static int default_threads(void)
{
    int n = omp_get_max_threads();
    return n < MAX_THREADS ? n : MAX_THREADS;
}

int command_train(int argc, char **argv)
{
    train_opts o;
    training t = {.o = &o};
    adj_tensors *resumed = NULL;

    int status = parse_train(&o, argc, argv);
    if (status == CONTINUE && o.resume)
        status = checkpoint_open(&o, &resumed);
    if (status == CONTINUE) {
        set_train_defaults(&o);
        if (o.threads == 0) /* a checkpoint says how many there were */
            o.threads = default_threads();
        omp_set_num_threads((int)o.threads);
        status = start(&t);
    }
    if (status == CONTINUE && o.resume)
        status = resume(&t);
    if (status == CONTINUE)
        status = run(&t);
    if (t.log != NULL && fclose(t.log) != 0 && status == EXIT_OK)
        status = log_failed(&t);
    if (t.output != NULL && t.output != t.log)
        fclose(t.output); /* copying to it was a success, or was not */
    adj_trainer_free(t.trainer);
    adj_dataset_free(t.test);
    adj_dataset_free(t.train);
    adj_tensors_free(resumed);
    return status;
}
