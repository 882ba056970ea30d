/* progress.h - what training says while it runs: a line that tells how far it is, a line for each
 * epoch, and the curve of the loss at the end; each fits the terminal. */
#ifndef CLI_TRAIN_PROGRESS_H
#define CLI_TRAIN_PROGRESS_H

#include <stdint.h>

#include "cli/terminal.h"

typedef struct {
    terminal terminal;
    int64_t epochs, steps, batch; /* steps: of one epoch */
    int64_t from;                 /* the epoch's first step, another than 0 when resumed */
    double started, shown;        /* seconds */
    double epoch_started;         /* at the end of that step, which may have to warm up */
} progress;

progress progress_start(terminal t, int64_t epochs, int64_t steps, int64_t batch);
/* After step (0, 1, ..) of epoch (0, 1, ..); loss and accuracy (per cent) of the epoch so far. On a
 * terminal it rewrites its line a few times a second; elsewhere it prints one from time to time. */
void progress_step(progress *p, int64_t epoch, int64_t step, double loss, double accuracy);
/* Takes the line away, for something else to be printed. */
void progress_clear(const progress *p);

typedef struct {
    int64_t epoch;                                                      /* 1, 2, ... */
    double loss, accuracy, held_loss, held_accuracy, images_per_second; /* accuracies: per cent */
    const char *held;                                                   /* "test" */
    int best;                                                           /* the best one so far */
} epoch_line;
void progress_epoch(const progress *p, const epoch_line *e);

/* The losses of the whole training, from the first to the last. */
void progress_curve(const progress *p, int n, const double loss[]);

#endif
