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
    int64_t epoch, from;   /* current epoch, and its first step in this run: not 1 after resuming */
    double epoch_started;  /* time at the end of that step, which includes the warm-up */
} progress;

progress progress_start(terminal t, int64_t batch);
/* Updates the progress line after a step: on a terminal a few times a second in place; elsewhere as
 * a new line from time to time. */
void progress_step(progress *p, const adj_fit_progress *f);
/* Clears the line before other output. */
void progress_clear(const progress *p);

/* Prints the line of an epoch; held_out_name: name of the held-out data, "test". */
void progress_epoch(const progress *p, const char *held_out_name, const adj_fit_progress *f,
                    double images_per_second);

#endif
