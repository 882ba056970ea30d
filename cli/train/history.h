/* history.h - a training's course, as its metrics.jsonl tells it: losses of steps, the mean of a
 * few each, and results of epochs. */
#ifndef CLI_TRAIN_HISTORY_H
#define CLI_TRAIN_HISTORY_H

#include <stdint.h>

typedef struct { /* after an epoch; accuracies in per cent; NaN: not told */
    double loss, accuracy, held_out_loss, held_out_accuracy, seconds;
    int64_t epoch; /* 1, 2, ... */
} history_epoch_entry;

typedef struct { /* the mean over some steps up to `at` */
    double at;   /* in epochs */
    double loss, lr;
} history_step_entry;

typedef struct {
    int n_epoch, n_step;
    history_epoch_entry *epoch;
    history_step_entry *step;
} history;

/* Reads "step", "epoch" and "resume" lines; other lines are passed over, as is a file that cannot
 * be read. h is zero before; to be freed. */
void history_read(history *h, const char *path);
void history_free(history *h);

#endif
