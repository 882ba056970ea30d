/* progress.h - what training says while it runs: a line that tells how far it is, and a line for
 * each epoch; each fits the terminal. */
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
/* After a step. On a terminal it rewrites its line a few times a second; elsewhere it prints one
 * from time to time. */
void progress_step(progress *p, const adj_fit_progress *f);
/* Takes the line away, for something else to be printed. */
void progress_clear(const progress *p);

/* After an epoch; held_out_name: of the held-out data, "test". */
void progress_epoch(const progress *p, const char *held_out_name, const adj_fit_progress *f);

#endif
