/* history.h - a training's course, for the report and the curve on the terminal: losses of steps,
 * the mean of a few each, and results of epochs. A run that is resumed reads them from the log of
 * the run before. */
#ifndef CLI_TRAIN_HISTORY_H
#define CLI_TRAIN_HISTORY_H

#include <stdint.h>

typedef struct { /* after an epoch; accuracies in per cent */
    double loss, accuracy, held_out_loss, held_out_accuracy, seconds;
    int64_t epoch; /* 1, 2, ... */
} history_epoch_entry;

typedef struct { /* the mean over some steps up to `at` */
    double at;   /* in epochs */
    double loss, lr;
} history_step_entry;

enum { HISTORY_STEPS = 20 }; /* entries that an epoch's steps are put into */

typedef struct {
    int n_epoch, n_step, failed; /* failed: out of memory, and something is missing */
    history_epoch_entry *epoch;
    history_step_entry *step;
    double sum; /* of the losses since the last entry */
    int64_t count;
} history;

/* After step (0, 1, ...) of `steps` in epoch (0, 1, ...): 1 if it made an entry, the last. */
int history_step(history *h, int64_t epoch, int64_t step, int64_t steps, double loss, double lr);
void history_epoch(history *h, const history_epoch_entry *e);
/* Entries up to that position from a log's "step" and "epoch" lines; of an epoch told twice the
 * later. Lines that are none are passed over, as is a file that cannot be read. */
void history_read(history *h, const char *path, int64_t epochs, double position);
void history_free(history *h);

#endif
