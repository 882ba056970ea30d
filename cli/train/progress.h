/* progress.h - progress of a training: a progress line and a line for each epoch; each fits the
 * terminal. */
#ifndef CLI_TRAIN_PROGRESS_H
#define CLI_TRAIN_PROGRESS_H

#include "adjoint_fit.h"
#include "cli/terminal.h"

typedef struct {
    terminal terminal;
    int64_t batch;
    double started, shown; /* seconds */
    int64_t epoch, from;   /* the epoch at work, and its first step here: another than 1 when
                              resumed */
    double epoch_started;  /* at the end of that step, which may have to warm up */
} progress;

progress progress_start(terminal t, int64_t batch);
/* Updates the progress line after a step: on a terminal a few times a second in place; elsewhere as
 * a new line from time to time. */
void progress_step(progress *p, const adj_fit_progress *f);
/* Clears the line before other output. */
void progress_clear(const progress *p);

/* Prints the line of an epoch; held_out_name: name of the held-out data, "test". */
void progress_epoch(const progress *p, const char *held_out_name, const adj_fit_progress *f);

#endif
