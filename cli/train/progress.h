/* progress.h - progress of a training: a progress line and a line for each epoch, each of which
 * fits the terminal; and the load of this process's processors by others. */
#ifndef CLI_TRAIN_PROGRESS_H
#define CLI_TRAIN_PROGRESS_H

#include <sched.h>
#include <stdio.h>

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

/* ---- load by other processes. A step waits for its slowest thread, so on a busy machine fewer
 * threads, or threads that do not spin, are faster ---- */

/* Seconds since arbitrary starting points. busy: of all processes on the processors that this one
 * may use, with time that a hypervisor gave to other machines; < 0: unknown. */
typedef struct {
    double at, busy, own;
} cpu_times;

cpu_times cpu_times_now(void);
/* Returns the average number of processors that other processes used between two times; 0: none or
 * unknown. */
double cpu_neighbors(const cpu_times *from, const cpu_times *to);

enum { ADVICE_TEXT = 240 };
/* Writes a note for a machine on which other processes keep this many processors busy. It advises
 * fewer threads, and waiting without spinning unless OMP_WAIT_POLICY is set. */
const char *cpu_advice(double others, int processors, char text[ADVICE_TEXT]);

/* Returns the busy seconds in a file like /proc/stat; ticks: ticks per second. For tests. */
double cpu_busy(FILE *stat, const cpu_set_t *ours, double ticks);

#endif
