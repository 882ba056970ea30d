/* events.c - see events.h. */
#include <errno.h>
#include <omp.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/machine/machine.h"
#include "cli/command.h"
#include "cli/json.h"
#include "cli/model.h"
#include "data.h"
#include "events.h"
#include "exec/report.h"
#include "files.h"
#include "train.h"

/* ---- signals ---- */

static volatile sig_atomic_t first_signal, has_note, is_terminal;

/* Handles a signal; calls only functions that are safe in a signal handler. */
static void on_signal(int number)
{
    static const char note[] =
        "\nnote: stopping after this step; press Ctrl-C again to stop without saving\n";
    const int before = errno;
    if (first_signal != 0) {
        signal(number, SIG_DFL);
        raise(number); /* takes effect when this handler returns */
        return;
    }
    first_signal = number;
    const size_t skipped =
        is_terminal ? 0 : 1; /* a terminal's cursor is behind ^C or the progress line */
    if (has_note && write(STDERR_FILENO, note + skipped, sizeof note - 1 - skipped) < 0)
        has_note = 0;
    errno = before;
}

void interrupt_catch(int prints)
{
    struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, before;
    has_note = prints;
    is_terminal = isatty(STDERR_FILENO);
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &a, NULL);
}

int interrupt_signal(void) { return first_signal; }

/* ---- progress ---- */

/* Writes a line to both logs and frees the object. 0 on success. */
static int log_event(events *e, json_t *object)
{
    e->failed |= log_line(e->files->log, json_incref(object)) != 0;
    e->failed |= log_line(e->files->metrics, object) != 0;
    return e->failed;
}

/* ---- before the first step ---- */

static void say_start(const events *e, const adj_trainer *t, int64_t parameters,
                      const adj_dataset *const part[2], const adj_recipe *recipe)
{
    const char *const words[] = {part_name(ADJ_TRAIN), e->held_out_name};
    const train_opts *o = e->o;
    const int frozen = adj_trainer_details(t).frozen;
    const exec_details plan = adj_exec_details(adj_trainer_exec(t));
    char text[RECIPE_TEXT], augmentation[AUGMENTATION_TEXT];

    say_found(o->data.path, 2, part, words);
    say_empty_classes(part[0]);
    say_wrapped("%s, %lld parameters", o->model, (long long)parameters);
    say_wrapped("%s", recipe_text(recipe, text));
    if (o->flip || o->cutout > 0 || o->jitter > 0 || o->mixup > 0)
        say_wrapped("augmentation: %s", augmentation_text(o, augmentation));
    if (strcmp(o->class_weights, "none") != 0)
        say_wrapped("class weights: %s", o->class_weights);
    if (plan.timed > 0)
        say_wrapped("benchmarked kernels in %.1f s (--tune off skips this)", plan.timed_seconds);
    if (frozen > 0)
        say_wrapped("%d parameter tensor%s frozen by %s", frozen, frozen > 1 ? "s are" : " is",
                    o->freeze);
}

/* Returns the options that are not part of the recipe. */
static json_t *options_json(const train_opts *o)
{
    return json_pack("{s:b, s:I, s:f, s:f, s:s, s:I, s:s, s:s, s:I}", "flip", (int)o->flip,
                     "cutout", (json_int_t)o->cutout, "jitter", o->jitter, "mixup", o->mixup,
                     "class_weights", o->class_weights, "patience", (json_int_t)o->patience,
                     "precision", o->precision, "math", o->math, "threads", (json_int_t)o->threads);
}

/* Adds the command line, processor, versions and kind of arithmetic. */
static json_t *place_json(const events *e)
{
    char onednn[64] = "";
    const machine_facts machine = machine_look("");
    (void)adj_backend_describe("onednn", onednn, sizeof onednn);
    return json_pack("{s:o, s:s, s:s, s:o}", "processor", json_text(machine.name), "adjoint",
                     adj_version_text(), "onednn", onednn, "command", json_text(e->command));
}

int tell_start(events *e, const adj_trainer *t, const adj_dataset *train,
               const adj_dataset *held_out, const adj_recipe *recipe, const adj_range_test *range)
{
    const train_opts *o = e->o;
    const int64_t parameters = adj_trainable_elems(adj_trainer_loss(t));

    const adj_dataset *const part[] = {train, held_out};

    say_start(e, t, parameters, part, recipe);
    if (range != NULL)
        say_range(range, o->lr);
    fflush(stdout);
    json_t *start = json_pack("{s:s, s:s, s:I, s:o, s:I, s:s, s:I, s:I, s:I, s:s}", "event",
                              "start", "model", o->model, "parameters", (json_int_t)parameters,
                              "data", json_text(data_name(o->data.path)), "train_images",
                              (json_int_t)train->n, "held_out", e->held_out_name, "held_out_images",
                              (json_int_t)held_out->n, "epochs", (json_int_t)o->epochs, "seed",
                              (json_int_t)o->seed, "backend", o->backend);
    json_object_update_new(start, recipe_json(recipe));
    json_object_update_new(start, options_json(o));
    json_object_update_new(start, place_json(e));
    if (log_event(e, start) != 0)
        return -1;
    return range != NULL ? log_event(e, json_range(range, o->lr)) : 0;
}

/* Prints a note that the learning rate schedule starts again, which may lower the accuracy at
 * first. */
static void say_prolonged(const events *e)
{
    const train_opts *o = e->o;
    const int falls_on =
        strcmp(o->schedule, "step") == 0 || strcmp(o->schedule, "exponential") == 0;
    say_wrapped("extended from %lld to %lld epochs: %s", (long long)o->begun_epochs,
                (long long)o->epochs,
                falls_on ? "the learning rate keeps decaying"
                         : "the learning rate schedule restarts; accuracy may drop at first");
}

/* Returns the epochs done, with the fraction of the current one. */
static double position_of(const adj_fit_progress *f)
{
    return (double)(f->epoch - 1) + (f->steps > 0 ? (double)f->step / (double)f->steps : 0);
}

int tell_resumption(events *e, const adj_trainer *t)
{
    const adj_fit_progress at = adj_trainer_progress(t);
    if (e->o->begun_epochs < e->o->epochs)
        say_prolonged(e);
    say_wrapped("resumed after epoch %lld, step %lld", (long long)at.epoch - 1, (long long)at.step);
    if (adj_trainer_is_done(t))
        say_wrapped("note: the run is complete; raise --epochs to extend it");
    fflush(stdout);
    return log_event(e, json_pack("{s:s, s:I, s:I, s:f}", "event", "resume", "epoch",
                                  (json_int_t)at.epoch - 1, "step", (json_int_t)at.step, "at",
                                  position_of(&at)));
}

/* ---- while it runs ---- */

/* Prints a note, once and only on a terminal, if other processes keep the machine busy, with faster
 * settings. */
static void watch_neighbors(events *e)
{
    enum { SECONDS = 5 };
    const int processors = omp_get_num_procs();
    const cpu_times from = e->watched;

    if (e->neighbors_reported || !e->shown.terminal.lines ||
        (from.at > 0 && seconds_now() - from.at < SECONDS))
        return;
    e->watched = cpu_times_now();
    const double others = from.at > 0 ? cpu_neighbors(&from, &e->watched) : 0;
    if (others < 0.5 || (double)e->o->threads + others < processors + 0.5)
        return;
    char text[ADVICE_TEXT];
    e->neighbors_reported = 1;
    progress_clear(&e->shown);
    say_wrapped("%s", cpu_advice(others, processors, text));
}

/* metrics has the means of a twentieth of an epoch's steps. */
int tell_step(events *e, const adj_fit_progress *f)
{
    enum { PARTS = 20 };
    progress_step(&e->shown, f);
    watch_neighbors(e);
    e->loss_sum += f->step_loss;
    e->losses++;
    if (f->step * PARTS / f->steps == (f->step - 1) * PARTS / f->steps)
        return e->failed;
    e->failed |=
        log_line(e->files->metrics,
                 json_pack("{s:s, s:I, s:I, s:f, s:o, s:f}", "event", "step", "epoch",
                           (json_int_t)f->epoch, "step", (json_int_t)f->step, "at", position_of(f),
                           "loss", json_number(e->loss_sum / (double)e->losses), "lr", f->lr)) != 0;
    e->loss_sum = 0;
    e->losses = 0;
    return e->failed;
}

/* Seconds of each rank's steps. */
static json_t *ranks_json(const trainer_details *d)
{
    json_t *list = json_array();
    for (int i = 0; i < d->n_rank; i++) {
        const rank_seconds *r = &d->rank_times[i];
        json_array_append_new(list, json_pack("{s:f, s:f, s:f}", "steps", r->seconds, "data",
                                              r->data, "others", r->others));
    }
    return list;
}

int tell_epoch(events *e, const adj_fit_progress *f, const trainer_details *d)
{
    progress_clear(&e->shown);
    progress_epoch(&e->shown, e->held_out_name, f, d->images_per_second);
    json_t *epoch =
        json_pack("{s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "event", "epoch", "epoch",
                  (json_int_t)f->epoch, "loss", f->train.loss, "accuracy", 100 * f->train.accuracy,
                  "held_out_loss", f->held_out.loss, "held_out_accuracy",
                  100 * f->held_out.accuracy, "lr", f->lr, "images_per_second",
                  d->images_per_second, "seconds", f->seconds, "waited", d->waited);
    if (f->loss_scale > 0)
        json_object_update_new(epoch, json_pack("{s:f, s:I}", "loss_scale", f->loss_scale,
                                                "skipped_steps", (json_int_t)f->skipped));
    if (d->n_rank > 1)
        json_object_set_new(epoch, "ranks", ranks_json(d));
    return log_event(e, epoch);
}

/* ---- after the last step ---- */

void tell_end(const events *e, const adj_trainer *t, int interrupted)
{
    const adj_fit_progress at = adj_trainer_progress(t);
    const int64_t done = at.step == at.steps ? at.epoch : at.epoch - 1;

    if (at.best_epoch > 0)
        say_wrapped("best: %.2f %% in epoch %lld", 100 * at.best, (long long)at.best_epoch);
    if (done < at.epochs && adj_trainer_is_done(t))
        say_wrapped("stopped early after epoch %lld of %lld (patience %lld): no better %s accuracy",
                    (long long)done, (long long)at.epochs, (long long)e->o->patience,
                    e->held_out_name);
    if (interrupted)
        say_wrapped("%s", e->o->checkpoint != NULL && !adj_trainer_details(t).unsaved
                              ? "stopped after a step; continue with --resume"
                              : "stopped after a step");
}

int log_end(events *e, const adj_trainer *t, int interrupted)
{
    const adj_fit_progress at = adj_trainer_progress(t);
    return log_event(e, json_pack("{s:s, s:I, s:f, s:b, s:f}", "event", "end", "best_epoch",
                                  (json_int_t)at.best_epoch, "best_accuracy", 100 * at.best,
                                  "interrupted", interrupted, "seconds",
                                  seconds_now() - e->shown.started));
}
