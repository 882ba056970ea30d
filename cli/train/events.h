/* events.h - reports the progress of a training: lines on the terminal and events in its logs; and
 * catches the signals that end it. */
#ifndef CLI_TRAIN_EVENTS_H
#define CLI_TRAIN_EVENTS_H

#include "files.h"
#include "ops/nn/model_list.h"
#include "ops/nn/range_test.h"
#include "progress.h"
#include "train.h"
#include "train/internal.h"

/* ---- SIGINT, SIGTERM and SIGHUP: the first one ends the training after the current step, with
 * everything saved; a second one ends the process at once ---- */

/* Catches the three signals from here on; under nohup SIGHUP stays ignored. prints: the first
 * signal prints a note on standard error as it arrives. */
void interrupt_catch(int prints);
/* Returns the number of the first signal that has arrived, or 0. */
int interrupt_signal(void);

/* ---- progress ---- */

typedef struct {
    const train_opts *o;
    char command[4096];        /* the command line */
    const char *held_out_name; /* split of the held-out data: "test" or "validation" */
    progress shown;
    double loss_sum; /* sums of the steps since the last line in metrics */
    int64_t losses;
    const run_files *files; /* its logs */
    int failed; /* 1: a log could not be written, which ends the run; the weights are valid */
    cpu_times watched; /* start of the watch for other processes; at 0: not watched */
    int neighbors_reported;
} events;

/* Reports model, data and settings before the first step. range: result of --lr auto, else NULL.
 * Returns 0 on success, like the functions below. */
int tell_start(events *e, const adj_trainer *t, const adj_dataset *train,
               const adj_dataset *held_out, const adj_recipe *recipe, const adj_range_test *range);
int tell_resumption(events *e, const adj_trainer *t);
int tell_step(events *e, const adj_fit_progress *f);
int tell_epoch(events *e, const adj_fit_progress *f, const trainer_details *d);

/* Reports after the last step the best epoch and why the training ended. interrupted: by a signal.
 */
void tell_end(const events *e, const adj_trainer *t, int interrupted);
/* Logs the end, after the weights are written. */
int log_end(events *e, const adj_trainer *t, int interrupted);

#endif
