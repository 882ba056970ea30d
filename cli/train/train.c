/* train.c - adjoint train: trains a model, tests it after each epoch, writes weights and a log.
 *
 * Two networks with the same parameter names: one for training steps, one for evaluation, which
 * gets the parameters by name before it is used or saved. Ctrl-C, SIGTERM and SIGHUP are noticed
 * between two steps. What a step does depends on the settings, the position and the parameters
 * alone; so a run that goes on from a checkpoint does what the other would have done. */
#include <errno.h>
#include <math.h>
#include <omp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint.h"
#include "cli/command.h"
#include "cli/json.h"
#include "cli/output.h"
#include "exec/clock.h"
#include "log.h"
#include "network.h"
#include "out.h"
#include "progress.h"
#include "results.h"
#include "train.h"

typedef struct {
    const train_opts *o;
    adj_dataset *train, *test;
    network trained, tested;
    adj_optimiser_opts optimiser;
    adj_schedule schedule;
    int64_t steps; /* of one epoch */
    int64_t *order;
    uint64_t data_sum; /* for checkpoints */
    position at;
    progress shown;
    history history;
    out_files out;
    FILE *log, *metrics; /* metrics: has the steps, too */
    int ran;             /* a step was made */
    int file_failed; /* the run ended because a file could not be written: the weights are right */
    adj_error unsaved; /* why the checkpoint could not */
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
    return complain("train", EXIT_USAGE, "unknown optimizer %s (did you mean %s?)", name,
                    nearest_of(name, names, n, sizeof names[0]));
}

/* A long run should not fail at its end for a wrong name. */
static int check_files(training *t)
{
    const train_opts *o = t->o;
    const output_file files[] = {{"--checkpoint", o->checkpoint, OUTPUT_REPLACED},
                                 {"--tune-file", o->tune_file, OUTPUT_REPLACED},
                                 {"--log", o->log, OUTPUT_IN_PLACE}};
    int status = out_open(&t->out, o->out);
    return status == CONTINUE ? out_check("train", &t->out, sizeof files / sizeof files[0], files)
                              : status;
}

/* Makes the folder and opens what is written from the beginning. */
static int open_files(training *t)
{
    const train_opts *o = t->o;
    int status = out_make(&t->out);
    if (status != CONTINUE)
        return status;
    if (o->log != NULL && (t->log = log_open(o->log, o->resume != 0)) == NULL)
        return complain("train", EXIT_FAILED, "--log: %s: %s", o->log, strerror(errno));
    if (t->out.metrics != NULL && (t->metrics = log_open(t->out.metrics, o->resume != 0)) == NULL)
        return complain("train", EXIT_FAILED, "--out: %s: %s", t->out.metrics, strerror(errno));
    return CONTINUE;
}

static void print_warning(const network *n)
{
    if (adj_exec_warning(n->exec)[0] != '\0')
        complain("train", EXIT_OK, "%s", adj_exec_warning(n->exec));
}

static int open_networks(training *t)
{
    const train_opts *o = t->o;
    network_opts options = {.model = o->model,
                            .batch = o->batch,
                            .classes = t->train->classes,
                            .seed = o->seed,
                            .threads = o->threads,
                            .backend = o->backend,
                            .math = (adj_math)word_index(MATH_WORDS, o->math),
                            .precision = (adj_precision)word_index(PRECISION_WORDS, o->precision),
                            .tune = (int)o->tune,
                            .tune_file = o->tune_file,
                            .recompute = (int)o->recompute,
                            .profile = t->out.report != NULL,
                            .optimiser = &t->optimiser};

    if (network_open(&t->trained, &options) != ADJ_OK)
        return complain("train", t->trained.m.model == NULL ? EXIT_USAGE : EXIT_FAILED, "%s",
                        t->trained.m.error.message);
    print_warning(&t->trained);
    options.optimiser = NULL;
    options.profile = 0;
    options.batch = t->test->n < EVAL_BATCH ? t->test->n : EVAL_BATCH;
    if (network_open(&t->tested, &options) != ADJ_OK)
        return complain("train", EXIT_FAILED, "%s", t->tested.m.error.message);
    print_warning(&t->tested);
    return CONTINUE;
}

static int start(training *t)
{
    const train_opts *o = t->o;

    if (adj_optimiser_from_name(o->optimizer, &t->optimiser) != ADJ_OK)
        return unknown_optimizer(o->optimizer);
    int status = check_files(t);
    if (status == CONTINUE)
        status = open_data("train", o->data, ADJ_TRAIN, &t->train);
    if (status == CONTINUE)
        status = open_data("train", o->data, ADJ_TEST, &t->test);
    if (status == CONTINUE)
        status = open_networks(t);
    if (status == CONTINUE)
        status = open_files(t);
    if (status != CONTINUE)
        return status;
    t->order = calloc((size_t)t->train->n, sizeof *t->order);
    if (t->order == NULL)
        return complain("train", EXIT_FAILED, "out of memory");

    t->steps = (t->train->n + o->batch - 1) / o->batch;
    t->schedule =
        (adj_schedule){.kind = ADJ_SCHEDULE_COSINE, .base = o->lr, .total = o->epochs * t->steps};
    if (o->checkpoint != NULL)
        t->data_sum = data_checksum(t->train);
    return CONTINUE;
}

static checkpoint_of about(const training *t)
{
    return (checkpoint_of){t->o, t->train, t->data_sum, t->steps, t->order};
}

static int save_checkpoint(training *t)
{
    const checkpoint_of c = about(t);
    t->unsaved = (adj_error){0};
    if (t->o->checkpoint == NULL || checkpoint_save(&c, &t->trained, &t->at, &t->unsaved) == ADJ_OK)
        return CONTINUE;
    t->file_failed = 1;
    return EXIT_FAILED;
}

static int log_failed(const training *t)
{
    int is_log = t->log != NULL && ferror(t->log);
    return complain("train", EXIT_FAILED, "%s: %s: cannot be written", is_log ? "--log" : "--out",
                    is_log ? t->o->log : t->out.metrics);
}

/* A line of both logs; frees the object. 0 on success. */
static int log_event(const training *t, json_t *object)
{
    int failed = log_line(t->log, json_incref(object));
    return log_line(t->metrics, object) || failed;
}

static int log_start(const training *t)
{
    const train_opts *o = t->o;

    say_wrapped(&t->shown.terminal,
                "%s, %lld parameters, on %s: %lld images to train on, %lld to test", o->model,
                (long long)t->trained.params, data_name(o->data), (long long)t->train->n,
                (long long)t->test->n);
    fflush(stdout);
    return log_event(
        t, json_pack("{s:s, s:s, s:I, s:o, s:I, s:I, s:I, s:I, s:s, s:s, s:f, s:I, s:I, s:s}",
                     "event", "start", "model", o->model, "parameters",
                     (json_int_t)t->trained.params, "data", json_text(data_name(o->data)),
                     "train_images", (json_int_t)t->train->n, "test_images", (json_int_t)t->test->n,
                     "epochs", (json_int_t)o->epochs, "batch", (json_int_t)o->batch, "optimizer",
                     o->optimizer, "schedule", "cosine", "lr", t->schedule.base, "shift",
                     (json_int_t)o->shift, "seed", (json_int_t)o->seed, "backend", o->backend));
}

static int log_resumption(const training *t)
{
    say_wrapped(&t->shown.terminal, "resumed after epoch %lld, step %lld", (long long)t->at.epoch,
                (long long)t->at.step);
    fflush(stdout);
    return log_event(t, json_pack("{s:s, s:I, s:I}", "event", "resume", "epoch",
                                  (json_int_t)t->at.epoch, "step", (json_int_t)t->at.step));
}

/* After a step with the loss: remembers it, and tells the means of a few at a time. 0 on
 * success. */
static int note_step(training *t, double loss, double lr)
{
    const position *at = &t->at;
    t->ran = 1;
    if (!history_step(&t->history, at->epoch, at->step, t->steps, loss, lr))
        return 0;
    const report_step *s = &t->history.step[t->history.n_step - 1];
    return log_line(t->metrics,
                    json_pack("{s:s, s:I, s:I, s:f, s:o, s:f}", "event", "step", "epoch",
                              (json_int_t)at->epoch + 1, "step", (json_int_t)at->step + 1, "at",
                              s->at, "loss", json_number(s->loss), "lr", s->lr));
}

/* The steps of the epoch that are left, or those up to an interrupt. */
static int train_epoch(training *t)
{
    position *at = &t->at;
    training_step s = {.order = t->order,
                       .shift = t->o->shift,
                       .seed = (uint64_t)t->o->seed,
                       .drawn = (uint64_t)(at->epoch * t->steps * t->o->batch)};
    int status = CONTINUE;

    adj_shuffle(t->train->n, (uint64_t)t->o->seed, (uint64_t)at->epoch, t->order);
    t->shown.from = at->step;
    while (at->step < t->steps && status == CONTINUE && !interrupted) {
        const tally before = at->sum;
        s.lr = adj_schedule_rate(&t->schedule, at->epoch * t->steps + at->step);
        if (network_step(&t->trained, t->train, at->step * t->o->batch, &s, &at->sum) != ADJ_OK) {
            progress_clear(&t->shown);
            return complain("train", EXIT_FAILED, "%s", t->trained.m.error.message);
        }
        if (!isfinite(at->sum.loss)) {
            progress_clear(&t->shown);
            return complain("train", EXIT_FAILED,
                            "the loss is not finite in step %lld of epoch %lld: try a smaller --lr "
                            "(now %g)",
                            (long long)at->step + 1, (long long)at->epoch + 1, s.lr);
        }
        const tally of_step = {at->sum.loss - before.loss, 0, at->sum.count - before.count};
        if (note_step(t, mean_loss(of_step), s.lr) != 0) {
            t->file_failed = 1;
            return log_failed(t);
        }
        progress_step(&t->shown, at->epoch, at->step++, mean_loss(at->sum), accuracy(at->sum));
        if (t->o->every > 0 && at->step % t->o->every == 0 && at->step < t->steps)
            status = save_checkpoint(t);
    }
    return status;
}

/* Those of the network for testing. */
static int save_weights(const training *t, const char *path)
{
    adj_error error;
    const adj_metadata metadata[] = {{"model", t->o->model}, {"optimizer", t->o->optimizer}};
    if (adj_weights_save(t->tested.exec, path, 2, metadata, &error) != ADJ_OK)
        return complain("train", EXIT_FAILED, "--out: %s", error.message);
    return CONTINUE;
}

/* Tests, prints and logs the epoch whose steps are done, of which so many images took so many
 * seconds; the position is then the next epoch's beginning. */
static int finish_epoch(training *t, int64_t images, double took)
{
    position *at = &t->at;
    tally test, train = at->sum;
    adj_status status = adj_copy_params(t->tested.exec, t->trained.exec);

    progress_clear(&t->shown);
    if (status != ADJ_OK)
        return complain("train", EXIT_FAILED, "%s", adj_exec_message(t->tested.exec));
    if (network_evaluate(&t->tested, t->test, &test) != ADJ_OK)
        return complain("train", EXIT_FAILED, "%s", t->tested.m.error.message);
    double lr = adj_schedule_rate(&t->schedule, (at->epoch + 1) * t->steps - 1);
    double speed = took > 0 ? (double)images / took : 0;
    *at = (position){.epoch = at->epoch + 1, .best_epoch = at->best_epoch, .best = at->best};
    int is_best = at->best_epoch == 0 || accuracy(test) > at->best;
    if (is_best) {
        at->best_epoch = at->epoch;
        at->best = accuracy(test);
    }
    progress_epoch(&t->shown,
                   &(epoch_line){at->epoch, mean_loss(train), accuracy(train), mean_loss(test),
                                 accuracy(test), speed, "test", is_best});
    history_epoch(&t->history, &(report_epoch){mean_loss(train), accuracy(train), mean_loss(test),
                                               accuracy(test), took, at->epoch});
    if (is_best && t->out.best != NULL && save_weights(t, t->out.best) != CONTINUE) {
        t->file_failed = 1;
        return EXIT_FAILED;
    }
    t->file_failed =
        log_event(t, json_pack("{s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "event", "epoch",
                               "epoch", (json_int_t)at->epoch, "loss", mean_loss(train), "accuracy",
                               accuracy(train), "test_loss", mean_loss(test), "test_accuracy",
                               accuracy(test), "lr", lr, "images_per_second", speed, "seconds",
                               took)) != 0;
    return t->file_failed ? log_failed(t) : CONTINUE;
}

static int save_out(training *t)
{
    if (t->out.weights == NULL)
        return CONTINUE;
    if (adj_copy_params(t->tested.exec, t->trained.exec) != ADJ_OK)
        return complain("train", EXIT_FAILED, "%s", adj_exec_message(t->tested.exec));
    if (save_weights(t, t->out.weights) != CONTINUE)
        return EXIT_FAILED;
    say("weights written to %s", t->out.weights);
    fflush(stdout);
    return CONTINUE;
}

/* The last that is done: measuring the plan changes the parameters. */
static int save_report(training *t, int argc, char **argv)
{
    adj_error error;
    const results_of r = {.o = t->o,
                          .train = t->train,
                          .held = t->test,
                          .trained = &t->trained,
                          .tested = &t->tested,
                          .history = &t->history,
                          .argc = argc,
                          .argv = argv,
                          .best_epoch = t->at.best_epoch,
                          .best = t->at.best,
                          .seconds = seconds_now() - t->shown.started,
                          .interrupted = interrupted != 0,
                          .ran = t->ran};
    if (t->out.report == NULL)
        return CONTINUE;
    if (results_write(&r, t->out.report, &error) != ADJ_OK)
        return complain("train", EXIT_FAILED, "--out: %s", error.message);
    say("report written to %s", t->out.report);
    return CONTINUE;
}

/* The weights at the end. After a file failed they are tried everywhere, the checkpoint once more,
 * before the run ends. */
static int save(training *t)
{
    int status = save_out(t);

    if (t->unsaved.status != ADJ_OK) {
        const adj_error first = t->unsaved;
        int late = save_checkpoint(t) == CONTINUE;
        return complain("train", EXIT_FAILED, "--checkpoint: %s%s", first.message,
                        late ? " (it was written at the second try)" : "");
    }
    if (t->file_failed && save_checkpoint(t) != CONTINUE)
        return complain("train", EXIT_FAILED, "--checkpoint: %s", t->unsaved.message);
    return status;
}

/* Up to the end, or to the step after which an interrupt is noticed. */
static int run_epochs(training *t)
{
    int status = CONTINUE;

    while (t->at.epoch < t->o->epochs && status == CONTINUE && !interrupted) {
        int64_t before = t->at.sum.count;
        double began = seconds_now();
        status = train_epoch(t);
        if (status == CONTINUE && !interrupted)
            status = finish_epoch(t, t->at.sum.count - before, seconds_now() - began);
        if (status == CONTINUE)
            status = save_checkpoint(t);
    }
    progress_clear(&t->shown);
    return status;
}

/* The curve of what is known from the log of the run before, too. */
static void print_curve(const training *t)
{
    int n = t->history.n_step;
    double *loss = calloc((size_t)n + 1, sizeof *loss);
    for (int i = 0; i < n && loss != NULL; i++)
        loss[i] = t->history.step[i].loss;
    if (loss != NULL)
        progress_curve(&t->shown, n, loss);
    free(loss);
}

static int run(training *t, int argc, char **argv)
{
    t->shown = progress_start(terminal_open((int)t->o->plain), t->o->epochs, t->steps, t->o->batch);
    if (t->o->resume && t->out.metrics != NULL)
        history_read(&t->history, t->out.metrics, t->at.epoch,
                     (double)t->at.epoch + (double)t->at.step / (double)t->steps);
    if (log_start(t) != 0 || (t->o->resume && log_resumption(t) != 0))
        return log_failed(t);
    catch_interrupts();
    int ended = run_epochs(t);
    if (ended != CONTINUE && !t->file_failed)
        return ended;
    print_curve(t);
    if (t->at.best_epoch > 0)
        say_wrapped(&t->shown.terminal, "best: %.2f %% in epoch %lld", t->at.best,
                    (long long)t->at.best_epoch);
    if (interrupted)
        say_wrapped(&t->shown.terminal, "%s",
                    t->o->checkpoint != NULL && !t->file_failed
                        ? "stopped after the step, which --resume goes on from"
                        : "stopped after the step");
    int status = save(t);
    if (log_event(t, json_pack("{s:s, s:I, s:f, s:b, s:f}", "event", "end", "best_epoch",
                               (json_int_t)t->at.best_epoch, "best_accuracy", t->at.best,
                               "interrupted", interrupted != 0, "seconds",
                               seconds_now() - t->shown.started)) != 0)
        return log_failed(t);
    if (ended != CONTINUE || status != CONTINUE || save_report(t, argc, argv) != CONTINUE)
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
    if (status == CONTINUE && o.resume) {
        const checkpoint_of c = about(&t);
        status = checkpoint_restore(resumed, &c, &t.trained, &t.at);
    }
    if (status == CONTINUE)
        status = run(&t, argc, argv);
    /* Each line was written at once: closing loses nothing. */
    if (t.log != NULL)
        fclose(t.log);
    if (t.metrics != NULL)
        fclose(t.metrics);
    out_close(&t.out, status != EXIT_OK);
    history_free(&t.history);
    free(t.order);
    network_close(&t.tested);
    network_close(&t.trained);
    adj_dataset_free(t.test);
    adj_dataset_free(t.train);
    adj_tensors_free(resumed);
    return status;
}
