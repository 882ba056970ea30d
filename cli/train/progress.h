/* progress.h - what training tells of itself: one line that says how far it is, and a file of JSON
 * objects, one a line. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <jansson.h>
#include <stdio.h>

#include "adjoint_fit.h"
#include "exec/clock.h"

typedef struct {
    int terminal;
    int64_t batch;
    double started, shown; /* seconds */
    int64_t epoch, from;   /* the epoch at work, and its first step here: another than 1 when
                              resumed */
    double epoch_started;  /* at the end of that step, which may have to warm up */
} progress;

progress progress_start(int64_t batch);
/* After a step. On a terminal it rewrites its line a few times a second; elsewhere it prints one
 * from time to time. */
void progress_step(progress *p, const adj_fit_progress *f);
/* Takes the line away, for something else to be printed. */
void progress_clear(const progress *p);

/* ---- the log ---- */

/* append: behind what is there, on a line of its own. NULL with errno on failure. */
FILE *log_open(const char *path, int append);
/* Writes the object as a line at once, and frees it; f == NULL: only that. 0 on success. */
int log_line(FILE *f, json_t *object);

#endif
